//! Random operations against a simple model of balances, keys and message statuses.

use std::collections::BTreeMap;

use domain::{ApiKey, BatchId, KeyKind, MessageStatus, Money, Reason, Transid};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use service::{
    Actor, Claimed, IdempotencyKey, Lease, Leases, MessageFilter, Receipt, SANDBOX_CARRIER,
    SendError, SendRequest, SubmitOutcome,
};

use crate::database::Backend;
use crate::network::answered;
use crate::uploads::{plain, upload};
use crate::world::{Customer, HOUR_MS, PASSWORD, World, money, request};

on_each_backend![the_service_agrees_with_the_model_after_random_operations];

const STAFF: Actor = Actor::CommandLine;
/// The price of a page to a local number, in micro-units.
const LOCAL: i64 = 50_000;
/// The number of histories. It is enough for every operation to follow every other one.
/// `PROPTEST_CASES` changes it.
const CASES: u32 = 24;
/// The number of threads that share the histories, each with its own seed.
const RUNNERS: u32 = 4;

#[derive(Clone, Debug)]
enum Operation {
    /// Customer, pages, international, with the previous key.
    Send(usize, usize, bool, bool),
    /// Customer, idempotency key, pages.
    SendWithKey(usize, u8, usize),
    /// Customer, rows, with an idempotency key.
    Upload(usize, usize, bool),
    /// Expands the oldest upload.
    Expand,
    Deposit(usize, u32),
    SameDepositAgain,
    ReplaceKey(usize),
    SuspendOrReinstate(usize),
    Claim(i64),
    /// The carrier's response to the oldest claim.
    Answer(u8),
    Receive(u8),
    Pass(i64),
    Reopen,
}

fn operation() -> impl Strategy<Value = Operation> {
    let who = 0..2_usize;
    prop_oneof![
        8 => (who.clone(), 1..4_usize, any::<bool>(), prop::bool::weighted(0.1))
            .prop_map(|(who, pages, far, old)| Operation::Send(who, pages, far, old)),
        2 => (who.clone(), 0..2_u8, 1..3_usize)
            .prop_map(|(who, key, pages)| Operation::SendWithKey(who, key, pages)),
        3 => (who.clone(), 1..6_usize, any::<bool>())
            .prop_map(|(who, rows, keyed)| Operation::Upload(who, rows, keyed)),
        3 => Just(Operation::Expand),
        2 => (who.clone(), 1..2_000_000_u32).prop_map(|(who, micros)| Operation::Deposit(who, micros)),
        1 => Just(Operation::SameDepositAgain),
        1 => who.clone().prop_map(Operation::ReplaceKey),
        1 => who.prop_map(Operation::SuspendOrReinstate),
        4 => (1..5_i64).prop_map(Operation::Claim),
        4 => (0..3_u8).prop_map(Operation::Answer),
        3 => (0..3_u8).prop_map(Operation::Receive),
        1 => prop_oneof![Just(1_000), Just(61_000), Just(49 * HOUR_MS)].prop_map(Operation::Pass),
        1 => Just(Operation::Reopen),
    ]
}

struct Model {
    world: World,
    customers: Vec<Customer>,
    old_keys: Vec<ApiKey>,
    balances: Vec<i64>,
    suspended: Vec<bool>,
    /// Messages that aren't final: customer, cost, accepted by the carrier.
    open: BTreeMap<Transid, (usize, i64, bool)>,
    /// Final messages: customer, final status.
    ended: BTreeMap<Transid, (usize, MessageStatus)>,
    /// Uploads that aren't expanded: customer, rows.
    waiting: BTreeMap<BatchId, (usize, usize)>,
    /// The answers for idempotency keys: pages or rows, and the balance or batch.
    kept: BTreeMap<(usize, String), (usize, i64)>,
    claims: Vec<(Lease, Vec<Claimed>)>,
    /// The token of the last claim that still holds a message.
    holders: BTreeMap<Transid, i64>,
    deposits: u32,
    last_deposit: Option<(usize, i64)>,
}

impl Model {
    async fn new(backend: Backend) -> Self {
        let world = World::new(backend).await;
        let customers = vec![
            world.active("one@example.org", "1").await,
            world.active("two@example.org", "0").await,
        ];
        let old_keys = customers.iter().map(|customer| customer.live.clone()).collect();
        Self {
            world,
            customers,
            old_keys,
            balances: vec![1_000_000, 0],
            suspended: vec![false, false],
            open: BTreeMap::new(),
            ended: BTreeMap::new(),
            waiting: BTreeMap::new(),
            kept: BTreeMap::new(),
            claims: Vec::new(),
            holders: BTreeMap::new(),
            deposits: 0,
            last_deposit: None,
        }
    }

    async fn apply(mut self, operation: Operation) -> Self {
        match operation {
            Operation::Send(who, pages, far, old) => self.send(who, pages, far, old).await,
            Operation::SendWithKey(who, key, pages) => self.send_with_key(who, key, pages).await,
            Operation::Upload(who, rows, keyed) => self.upload(who, rows, keyed).await,
            Operation::Expand => self.expand().await,
            Operation::Deposit(who, micros) => self.deposit(who, i64::from(micros)).await,
            Operation::SameDepositAgain => self.deposit_again().await,
            Operation::ReplaceKey(who) => self.replace_key(who).await,
            Operation::SuspendOrReinstate(who) => self.suspend_or_reinstate(who).await,
            Operation::Claim(limit) => {
                let claim =
                    self.world.service.delivery().claim(SANDBOX_CARRIER, limit).await.unwrap();
                let holders = claim.1.iter().map(|message| (message.id, claim.0.token));
                self.holders.extend(holders);
                self.claims.push(claim);
            }
            Operation::Answer(kind) => self.answer(kind).await,
            Operation::Receive(kind) => self.receive(kind).await,
            Operation::Pass(ms) => self.pass(ms).await,
            Operation::Reopen => self.world = self.world.reopen().await,
        }
        self
    }

    async fn send(&mut self, who: usize, pages: usize, far: bool, old: bool) {
        let current = &self.customers[who].live;
        let key = if old { &self.old_keys[who] } else { current };
        let number = if far { "4915112345" } else { "12345678" };
        let each = if far { 250_000 } else { LOCAL };
        let cost = each * i64::try_from(pages).unwrap();
        let result = self
            .world
            .service
            .messages()
            .send(request(key, number, &"x".repeat(pages * 160)))
            .await;
        let expected = if key != current {
            Err(Reason::ApiInvalid)
        } else if self.suspended[who] {
            Err(Reason::ApiSuspended)
        } else if self.balances[who] < cost {
            Err(Reason::InsufficientFunds)
        } else {
            Ok(self.balances[who] - cost)
        };
        let answered = result.map(|sent| sent.balance.micros());
        assert_eq!(answered, expected.map_err(SendError::Refused));
        if let Ok(sent) = result {
            self.balances[who] = sent.balance.micros();
            self.open.insert(sent.transid.unwrap(), (who, cost, false));
        }
    }

    async fn send_with_key(&mut self, who: usize, key: u8, pages: usize) {
        let cost = LOCAL * i64::try_from(pages).unwrap();
        let key = format!("send {key}");
        let order = SendRequest {
            idempotency: IdempotencyKey::parse(&key),
            ..request(&self.customers[who].live, "12345678", &"x".repeat(pages * 160))
        };
        let result = self.world.service.messages().send(order).await;
        let answered = result.map(|sent| (sent.replayed, sent.balance.micros()));
        let expected = self.expected(who, &key, pages, cost);
        let balance = self.balances[who] - cost;
        assert_eq!(
            answered,
            expected.map(|kept| kept.map_or((false, balance), |kept| (true, kept)))
        );
        if let Ok((false, _)) = answered {
            self.balances[who] = balance;
            self.kept.insert((who, key), (pages, balance));
            let transid = result.unwrap().transid.unwrap();
            self.open.insert(transid, (who, cost, false));
        }
    }

    /// Returns the stored answer for this key, or `None` if the request must be accepted now.
    fn expected(
        &self,
        who: usize,
        key: &str,
        size: usize,
        cost: i64,
    ) -> Result<Option<i64>, SendError> {
        let refused = |reason| Err(SendError::Refused(reason));
        match self.kept.get(&(who, key.to_owned())) {
            Some((kept, answer)) if *kept == size => Ok(Some(*answer)),
            Some(_) => refused(Reason::IdempotencyMismatch),
            None if self.suspended[who] => refused(Reason::ApiSuspended),
            None if self.balances[who] < cost => refused(Reason::InsufficientFunds),
            None => Ok(None),
        }
    }

    async fn upload(&mut self, who: usize, rows: usize, keyed: bool) {
        let file = "12345678,hello\n".repeat(rows);
        let cost = LOCAL * i64::try_from(rows).unwrap();
        let key = if keyed { "upload" } else { "" };
        let live = self.customers[who].live.clone();
        let service = &self.world.service;
        let idempotency = keyed.then_some(key);
        let result = upload(service, &live, idempotency, &file, plain()).await;
        let answered = result.map(|batch| batch.replayed.then(|| batch.batchid.unwrap().0));
        assert_eq!(answered, self.expected(who, key, rows, cost));
        if answered == Ok(None) {
            let id = result.unwrap().batchid.unwrap();
            self.balances[who] -= cost;
            self.waiting.insert(id, (who, rows));
            if keyed {
                self.kept.insert((who, key.to_owned()), (rows, id.0));
            }
        }
    }

    async fn expand(&mut self) {
        let next = self.world.service.messages().next_unexpanded(None).await.unwrap();
        assert_eq!(next.as_ref(), self.waiting.keys().next());
        let Some(id) = next else { return };
        self.world.service.messages().expand(id).await.unwrap();
        let (who, rows) = self.waiting.remove(&id).unwrap();
        let access = self.world.access(&self.customers[who].live).await;
        let filter = MessageFilter { batchid: Some(id), limit: 100, ..MessageFilter::default() };
        let messages = self.world.service.messages().list(&access, &filter).await.unwrap();
        assert_eq!(messages.items.len(), rows);
        for message in messages.items {
            self.open.insert(message.transid, (who, LOCAL, false));
        }
    }

    async fn deposit(&mut self, who: usize, micros: i64) {
        self.deposits += 1;
        self.last_deposit = Some((who, micros));
        self.balances[who] += micros;
        self.repeat_deposit(false).await;
    }

    async fn deposit_again(&mut self) {
        if self.last_deposit.is_some() {
            self.repeat_deposit(true).await;
        }
    }

    async fn repeat_deposit(&self, already: bool) {
        let (who, micros) = self.last_deposit.unwrap();
        let reference = self.customers[who].reference.as_str();
        let amount = Money::from_micros(micros).to_string();
        let order = crate::world::order(&format!("bank-{}", self.deposits), reference, &amount);
        let done = self.world.service.money().add_deposit(&STAFF, &order).await.unwrap();
        assert_eq!(done.already, already);
    }

    async fn replace_key(&mut self, who: usize) {
        let customer = &mut self.customers[who];
        let replaced = self
            .world
            .service
            .applications()
            .replace_key(
                customer.account.id,
                customer.reference,
                KeyKind::Live,
                PASSWORD,
                "t",
                None,
            )
            .await
            .unwrap();
        self.old_keys[who] = std::mem::replace(&mut customer.live, replaced);
    }

    async fn suspend_or_reinstate(&mut self, who: usize) {
        let reference = self.customers[who].reference;
        let service = &self.world.service;
        if self.suspended[who] {
            service.applications().reinstate(&STAFF, reference).await.unwrap();
            service.delivery().resume_deferred().await.unwrap();
        } else {
            service.applications().suspend(&STAFF, reference, "why").await.unwrap();
        }
        self.suspended[who] = !self.suspended[who];
    }

    /// Answers a claim. If its lease was lost, the answer must change nothing.
    async fn answer(&mut self, kind: u8) {
        if self.claims.is_empty() {
            return;
        }
        let (lease, messages) = self.claims.remove(0);
        let mut results = Vec::new();
        for message in messages {
            let outcome = match kind {
                0 => SubmitOutcome::Accepted { carrier_message_id: Some("c".to_owned()) },
                1 => SubmitOutcome::Refused { error: "refused".to_owned() },
                _ => SubmitOutcome::Throttled { error: "busy".to_owned() },
            };
            if self.holders.get(&message.id) == Some(&lease.token) {
                self.expect(message.id, kind);
            }
            results.push(answered(&message, outcome));
        }
        self.world.record(SANDBOX_CARRIER, &lease, results).await;
    }

    fn expect(&mut self, id: Transid, kind: u8) {
        self.holders.remove(&id);
        let Some((who, cost, taken)) = self.open.get_mut(&id) else {
            return;
        };
        match kind {
            0 => *taken = true,
            1 => {
                self.balances[*who] += *cost;
                self.ended.insert(id, (*who, MessageStatus::Rejected));
                self.open.remove(&id);
            }
            _ => {}
        }
    }

    async fn receive(&mut self, kind: u8) {
        let Some(id) = self.open.iter().find(|(_, open)| open.2).map(|(id, _)| *id) else {
            return;
        };
        let (who, ..) = self.open.remove(&id).unwrap();
        let access = self.world.access(&self.customers[who].live).await;
        let status = [MessageStatus::Delivered, MessageStatus::Failed, MessageStatus::Expired]
            [usize::from(kind)];
        let application_id = access.application_id;
        let receipt = Receipt { id, application_id, status, error: None };
        self.world
            .service
            .delivery()
            .record_receipts(vec![receipt.clone(), receipt])
            .await
            .unwrap();
    }

    async fn pass(&mut self, ms: i64) {
        self.world.pass(ms);
        let service = &self.world.service;
        service.delivery().end_leases(Leases::Over).await.unwrap();
        let now = self.world.now();
        let over = self.claims.iter().filter(|(lease, _)| lease.until <= now);
        let over: Vec<_> = over.map(|(lease, _)| lease.token).collect();
        self.holders.retain(|_, token| !over.contains(token));
        self.world.service.delivery().expire().await.unwrap();
        if ms > 48 * HOUR_MS {
            for (id, (who, cost, taken)) in std::mem::take(&mut self.open) {
                self.balances[who] += if taken { 0 } else { cost };
                self.ended.insert(id, (who, MessageStatus::Expired));
            }
            self.kept.clear();
            self.world.expand_all().await;
            for (who, rows) in std::mem::take(&mut self.waiting).into_values() {
                self.balances[who] += LOCAL * i64::try_from(rows).unwrap();
            }
        }
    }

    async fn assert_agrees(&self) {
        for (customer, balance) in self.customers.iter().zip(&self.balances) {
            assert_eq!(self.world.balance(&customer.live).await, Money::from_micros(*balance));
        }
        for (id, (who, status)) in &self.ended {
            let access = self.world.access(&self.customers[*who].live).await;
            let found = self.world.service.messages().message(&access, *id).await.unwrap().unwrap();
            assert_eq!(found.record.status, *status);
        }
        for (id, (who, _, taken)) in &self.open {
            let access = self.world.access(&self.customers[*who].live).await;
            let found = self.world.service.messages().message(&access, *id).await.unwrap().unwrap();
            assert_eq!(found.record.status == MessageStatus::Submitted, *taken);
            assert!(!found.record.status.is_final());
        }
        self.world.assert_sound().await;
    }
}

async fn the_service_agrees_with_the_model_after_random_operations(backend: Backend) {
    // Each history runs on its own runtime.
    let running = tokio::task::spawn_blocking(move || run_histories(backend));
    running.await.unwrap();
}

/// Runs several histories at a time, because a history mostly waits for the disk.
fn run_histories(backend: Backend) {
    assert_eq!(money("1").micros(), 1_000_000);
    let cases =
        std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(CASES);
    std::thread::scope(|scope| {
        for runner in 0..RUNNERS {
            scope.spawn(move || run_share(backend, runner, cases.div_ceil(RUNNERS)));
        }
    });
}

fn run_share(backend: Backend, runner: u32, cases: u32) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut seed = [42; 32];
    seed[..4].copy_from_slice(&runner.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    TestRunner::new_with_rng(config, random)
        .run(&prop::collection::vec(operation(), 1..120), |operations| {
            runtime.block_on(async {
                let mut model = Model::new(backend).await;
                for operation in operations {
                    model = model.apply(operation).await;
                }
                model.assert_agrees().await;
                model.world.service.close().await;
            });
            Ok(())
        })
        .unwrap();
}
