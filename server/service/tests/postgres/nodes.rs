//! Several processes on one database.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::records::{ConnectionRecord, ConnectionState};
use domain::routing::{Route, Routes};
use domain::{KeyKind, MessageStatus, Reason};
use futures_util::future::join_all;
use service::{
    Actor, CarrierInfo, CarrierReceipt, Claimed, ClientInfo, Config, Entropy, IdempotencyKey,
    Leases, Limits, MessageFilter, Network, OpenError, SANDBOX_CARRIER, SendError, SendRequest,
    Service, SessionRow, SubmitOutcome, Submitted,
};
use sqlx::{AssertSqlSafe, Executor as _};

use crate::batches::rows;
use crate::world::{
    Customer, HOUR_MS, PASSWORD, World, answered, money, order, password, plain, refused, request,
    taken_as, upload,
};

const STAFF: Actor = Actor::CommandLine;
/// Longer than anything takes that isn't broken.
const SOON: Duration = Duration::from_secs(20);

/// Another process on the world's database.
pub async fn peer(world: &World, number: u64) -> Service {
    peer_with(world, number, Limits::default()).await
}

async fn peer_with(world: &World, number: u64, limits: Limits) -> Service {
    open(world, number, limits).await.ok().unwrap()
}

async fn open(world: &World, number: u64, limits: Limits) -> Result<Service, OpenError> {
    let config = Config {
        limits,
        entropy: Entropy::seeded(1_000_000 + number),
        ..world.config()
    };
    Service::open(config).await
}

/// The slot in an id.
fn slot(id: i64) -> i64 {
    (id >> 11) & 1023
}

fn keyed(key: &str, order: SendRequest) -> SendRequest {
    SendRequest {
        idempotency: IdempotencyKey::parse(key),
        ..order
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_process_has_a_number_of_its_own_and_ids_never_collide() {
    let world = World::new().await;
    let customer = world.active("one@example.org", "100").await;
    let services = [
        world.service.clone(),
        peer(&world, 1).await,
        peer(&world, 2).await,
    ];
    let sends = (0..300).map(|n| {
        let (service, key) = (services[n % 3].clone(), customer.live.clone());
        async move { service.send(request(&key, "12345678", "hello")).await }
    });
    let mut by_service: BTreeMap<usize, BTreeSet<i64>> = BTreeMap::new();
    for (n, sent) in join_all(sends).await.into_iter().enumerate() {
        let id = sent.unwrap().transid.unwrap().0;
        assert!(by_service.entry(n % 3).or_default().insert(id));
    }
    let slots = by_service
        .values()
        .map(|ids| ids.iter().map(|id| slot(*id)).collect());
    let slots: Vec<BTreeSet<i64>> = slots.collect();
    assert!(slots.iter().all(|slots| slots.len() == 1), "{slots:?}");
    assert_eq!(slots.iter().flatten().collect::<BTreeSet<_>>().len(), 3);
    assert_eq!(
        world.database.number("SELECT COUNT(*) FROM messages").await,
        300
    );
    // Each counts in rows of its own.
    let counting = "SELECT COUNT(DISTINCT node) FROM message_days WHERE writer = 0 AND n > 0";
    assert_eq!(world.database.number(counting).await, 3);
    // Uploads' messages have numbers of their own.
    for service in &services {
        let accepted = upload(service, &customer.live, None, &rows(3), plain()).await;
        accepted.unwrap();
    }
    world.expand_all().await;
    let of_uploads = "SELECT COUNT(DISTINCT (id >> 11) & 1023) FROM messages \
                      WHERE batch_id IS NOT NULL AND (id >> 11) & 1023 >= 512";
    assert_eq!(world.database.number(of_uploads).await, 3);
    world.assert_sound().await;
}

#[tokio::test]
async fn a_number_rests_for_an_hour() {
    let world = World::new().await;
    let mut conn = world.database.connect().await;
    conn.execute(
        "INSERT INTO nodes (slot, token, name, started_at, seen_at) \
         SELECT n, 0, 'gone', 1, (SELECT seen_at FROM nodes) + ABS(n - 77) FROM generate_series(1, 511) n",
    )
    .await
    .unwrap();
    world.pass(HOUR_MS);
    let refused = open(&world, 1, Limits::default()).await;
    assert!(matches!(refused.err(), Some(OpenError::TooManyNodes)));
    world.pass(1);
    // Whose last process ended before all others.
    let service = peer(&world, 1).await;
    let customer = world.active("one@example.org", "1").await;
    let sent = service
        .send(request(&customer.live, "12345678", "hello"))
        .await;
    assert_eq!(slot(sent.unwrap().transid.unwrap().0), 77);
    let refused = open(&world, 2, Limits::default()).await;
    assert!(matches!(refused.err(), Some(OpenError::TooManyNodes)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_key_charges_nothing_through_another_process() {
    let world = World::new().await;
    let b = peer(&world, 1).await;
    for round in 0..4 {
        let customer = world.active(&format!("{round}@example.org"), "1000").await;
        let replaced = Arc::new(AtomicBool::new(false));
        let sending: Vec<_> = (0..6)
            .map(|_| {
                let (b, key, replaced) = (b.clone(), customer.live.clone(), Arc::clone(&replaced));
                tokio::spawn(async move {
                    let mut accepted = 0;
                    loop {
                        let is_old = replaced.load(Ordering::SeqCst);
                        match b.send(request(&key, "12345678", "hello")).await {
                            Ok(_) => {
                                assert!(!is_old, "charged by a key that was replaced");
                                accepted += 1;
                            }
                            Err(error) => {
                                assert_eq!(error, SendError::Refused(Reason::ApiInvalid));
                                return accepted;
                            }
                        }
                    }
                })
            })
            .collect();
        while world.balance(&customer.live).await == money("1000") {}
        let (account, reference) = (customer.account.id, customer.reference);
        let new = world
            .service
            .replace_key(account, reference, KeyKind::Live, PASSWORD, "token")
            .await
            .unwrap();
        replaced.store(true, Ordering::SeqCst);
        let mut accepted = 0;
        for task in sending {
            accepted += task.await.unwrap();
        }
        let charged = 1_000_000_000 - world.balance(&new).await.micros();
        assert_eq!(charged, accepted * 50_000);
        assert!(b.send(request(&new, "12345678", "hello")).await.is_ok());
    }
    world.assert_sound().await;
}

async fn sign_in(service: &Service, customer: &Customer, token: &str) {
    let row = SessionRow {
        account_id: None,
        data: "{}".to_owned(),
        expires_at: service.clock().now(),
    };
    assert!(service.session_create(token, &row).await.unwrap());
    let (account, client) = (&customer.account, ClientInfo::default());
    service
        .device_sign_in(token, account, &client)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_sign_out_and_a_new_password_hold_everywhere_at_once() {
    let world = World::new().await;
    let (a, b) = (&world.service, peer(&world, 1).await);
    let customer = world.pending("one@example.org").await;
    for token in ["one", "two", "three"] {
        sign_in(a, &customer, token).await;
        assert!(b.session_holds(token).await.unwrap());
    }
    let account = customer.account.id;
    let devices = a.devices(account, "one").await.unwrap();
    let other = devices.iter().find(|device| !device.current).unwrap();
    a.sign_out_device(account, other.id).await.unwrap();
    let mut held = 0;
    for token in ["one", "two", "three"] {
        held += i32::from(b.session_holds(token).await.unwrap());
    }
    assert_eq!(held, 2);
    assert!(b.session_holds("one").await.unwrap());
    let new = password("another good password");
    a.change_password(account, PASSWORD, &new, "one")
        .await
        .unwrap();
    assert!(b.session_holds("one").await.unwrap());
    assert!(!b.session_holds("two").await.unwrap() && !b.session_holds("three").await.unwrap());
    assert!(b.sign_in("one@example.org", PASSWORD, "::1").await.is_err());
    let signed_in = b
        .sign_in("one@example.org", "another good password", "::1")
        .await;
    assert!(signed_in.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_idempotency_key_through_several_processes_charges_once() {
    let world = World::new().await;
    let customer = world.active("one@example.org", "100").await;
    let (a, b, c) = (
        world.service.clone(),
        peer(&world, 1).await,
        peer(&world, 2).await,
    );
    for n in 0..40 {
        let once = || {
            keyed(
                &format!("key {n}"),
                request(&customer.live, "12345678", "hello"),
            )
        };
        let answers = join_all([a.send(once()), b.send(once()), c.send(once())]).await;
        let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
        assert_eq!(answers.iter().filter(|sent| !sent.replayed).count(), 1);
        assert!(
            answers
                .iter()
                .all(|sent| sent.transid == answers[0].transid)
        );
        let other = keyed(
            &format!("key {n}"),
            request(&customer.live, "12345678", "no"),
        );
        let refused = Err(SendError::Refused(Reason::IdempotencyMismatch));
        assert_eq!(b.send(other).await, refused);
    }
    assert_eq!(world.balance(&customer.live).await, money("98"));
    world.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_upload_under_one_key_through_several_processes_is_one_batch() {
    let world = World::new().await;
    let customer = world.active("one@example.org", "100").await;
    let (a, b) = (world.service.clone(), peer(&world, 1).await);
    for n in 0..15 {
        let key = format!("key {n}");
        let file = rows(10);
        let (one, two) = tokio::join!(
            upload(&a, &customer.live, Some(&key), &file, plain()),
            upload(&b, &customer.live, Some(&key), &file, plain()),
        );
        let busy = Err(SendError::Refused(Reason::IdempotencyInProgress));
        assert!(one.is_ok() || one == busy, "{one:?}");
        assert!(two.is_ok() || two == busy, "{two:?}");
        let batches: BTreeSet<_> = [one, two]
            .into_iter()
            .flatten()
            .map(|batch| batch.batchid)
            .collect();
        assert_eq!(batches.len(), 1);
        let again = upload(&b, &customer.live, Some(&key), &file, plain())
            .await
            .unwrap();
        assert!(batches.contains(&again.batchid));
    }
    assert_eq!(
        world.database.number("SELECT COUNT(*) FROM batches").await,
        15
    );
    assert_eq!(world.balance(&customer.live).await, money("92.5"));
    world.expand_all().await;
    world.assert_sound().await;
}

#[tokio::test]
async fn an_upload_under_way_is_seen_by_the_others() {
    let world = World::new().await;
    let customer = world.active("one@example.org", "100").await;
    let (a, b) = (world.service.clone(), peer(&world, 1).await);
    let key = || IdempotencyKey::parse("key");
    let live = customer.live.expose();
    let ticket = a.begin_bulk(Some(live), key()).await.unwrap();
    let refused = b.begin_bulk(Some(live), key()).await.err();
    assert_eq!(refused, Some(Reason::IdempotencyInProgress));
    // The test key's requests are others.
    let test = b
        .begin_bulk(Some(customer.test.expose()), key())
        .await
        .unwrap();
    ticket.end().await;
    let ticket_of_b = b.begin_bulk(Some(live), key()).await.unwrap();
    for ticket in [ticket, ticket_of_b, test] {
        ticket.end().await;
    }
    let mut held = Vec::new();
    for n in 0..8 {
        let service = if n % 2 == 0 { &a } else { &b };
        held.push(service.begin_bulk(Some(live), None).await.unwrap());
    }
    for service in [&a, &b] {
        let refused = service.begin_bulk(Some(live), None).await.err();
        assert_eq!(refused, Some(Reason::RateLimited));
    }
    held[0].end().await;
    assert!(b.begin_bulk(Some(live), None).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_count_requests_together() {
    let world = World::new().await;
    let limits = Limits {
        requests_per_second: Some(20),
        ..Limits::default()
    };
    let customers = [
        world.active("one@example.org", "100").await,
        world.active("two@example.org", "100").await,
    ];
    let services = [
        peer_with(&world, 1, limits).await,
        peer_with(&world, 2, limits).await,
    ];
    for second in 0..4 {
        let sends = (0..160).map(|n| {
            let customer = &customers[(n / 2) % 2];
            let (service, key) = (services[n % 2].clone(), customer.live.clone());
            async move {
                (
                    key.reference(),
                    service.send(request(&key, "12345678", "hello")).await,
                )
            }
        });
        let answers = join_all(sends).await;
        for customer in &customers {
            let of_this = || {
                answers
                    .iter()
                    .filter(|(whose, _)| *whose == customer.reference)
            };
            assert_eq!(
                of_this().filter(|(_, sent)| sent.is_ok()).count(),
                20,
                "{second}"
            );
            let limited = Err(SendError::Refused(Reason::RateLimited));
            assert_eq!(of_this().filter(|(_, sent)| *sent == limited).count(), 60);
        }
        // Other requests come out of the same bucket.
        let access = world.access(&customers[0].live).await;
        assert_eq!(
            services[0].take_request(&access).await,
            Err(Reason::RateLimited)
        );
        world.pass(1000);
    }
    world.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_never_overdraw_together() {
    let world = World::new().await;
    let customer = world.active("one@example.org", "5").await;
    let services = [
        world.service.clone(),
        peer(&world, 1).await,
        peer(&world, 2).await,
    ];
    let sends = (0..300).map(|n| {
        let (service, key) = (services[n % 3].clone(), customer.live.clone());
        async move { service.send(request(&key, "12345678", "hello")).await }
    });
    let answers = join_all(sends).await;
    assert_eq!(answers.iter().filter(|sent| sent.is_ok()).count(), 100);
    let refused = Err(SendError::Refused(Reason::InsufficientFunds));
    assert_eq!(answers.iter().filter(|sent| **sent == refused).count(), 200);
    assert_eq!(world.balance(&customer.live).await, money("0"));
    world.assert_sound().await;
}

#[tokio::test]
async fn a_suspension_stops_the_claims_of_others() {
    let world = World::new().await;
    let customer = world.active("one@example.org", "5").await;
    let b = peer(&world, 1).await;
    for _ in 0..5 {
        world.send(&customer.live, "12345678").await.unwrap();
    }
    world
        .service
        .suspend(&STAFF, customer.reference, "a reason")
        .await
        .unwrap();
    assert!(b.claim(SANDBOX_CARRIER, 10).await.unwrap().1.is_empty());
    let refused = b.send(request(&customer.live, "12345678", "hello")).await;
    assert_eq!(refused, Err(SendError::Refused(Reason::ApiSuspended)));
    b.reinstate(&STAFF, customer.reference).await.unwrap();
    world.service.resume_put_aside().await.unwrap();
    assert_eq!(b.claim(SANDBOX_CARRIER, 10).await.unwrap().1.len(), 5);
    world.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_of_several_processes_never_overlap() {
    const MESSAGES: usize = 400;
    let world = World::new().await;
    let customer = world.active("one@example.org", "100").await;
    upload(
        &world.service,
        &customer.live,
        None,
        &rows(MESSAGES / 2),
        plain(),
    )
    .await
    .unwrap();
    world.expand_all().await;
    let sends = (0..MESSAGES / 2).map(|_| world.send(&customer.live, "12345678"));
    assert!(join_all(sends).await.iter().all(Result::is_ok));
    let services = [
        world.service.clone(),
        peer(&world, 1).await,
        peer(&world, 2).await,
    ];
    let mut seen = BTreeSet::new();
    while seen.len() < MESSAGES {
        let claims = services
            .iter()
            .map(|service| service.claim(SANDBOX_CARRIER, 7));
        let claims = join_all(claims).await;
        let found: Vec<_> = claims
            .into_iter()
            .flat_map(|claim| claim.unwrap().1)
            .collect();
        assert!(
            !found.is_empty(),
            "{} were never claimed",
            MESSAGES - seen.len()
        );
        for message in found {
            assert!(seen.insert(message.id), "claimed twice");
        }
    }
    for service in &services {
        assert!(
            service
                .claim(SANDBOX_CARRIER, 7)
                .await
                .unwrap()
                .1
                .is_empty()
        );
    }
    world.assert_sound().await;
}

fn one_carrier() -> Network {
    let route = Route {
        carrier: "acme".to_owned(),
        priority: 1,
        weight: NonZeroU32::MIN,
        kind: None,
        prefix: None,
        application: None,
        sender: None,
    };
    Network {
        carriers: vec![CarrierInfo {
            name: "acme".to_owned(),
            sandbox: false,
            whole: false,
        }],
        routes: Routes::new(vec![route]),
        country_code: "266".to_owned(),
        default_sender: "Heliograph".to_owned(),
    }
}

async fn statuses(world: &World, customer: &Customer) -> Vec<MessageStatus> {
    let access = world.access(&customer.live).await;
    let filter = MessageFilter {
        limit: 1000,
        ..MessageFilter::default()
    };
    let page = world.service.messages(&access, &filter).await.unwrap();
    page.items.iter().map(|message| message.status).collect()
}

#[tokio::test]
async fn a_lapsed_claim_is_ended_by_another_process() {
    let world = World::with(one_carrier()).await;
    let customer = world.active("one@example.org", "5").await;
    let b = peer(&world, 1).await;
    for _ in 0..3 {
        world.send(&customer.live, "12345678").await.unwrap();
    }
    let (lease, claimed) = world.service.claim("acme", 10).await.unwrap();
    assert_eq!(claimed.len(), 3);
    assert_eq!(b.end_leases(Leases::Over).await.unwrap(), 0);
    world.pass(60_000);
    assert_eq!(b.end_leases(Leases::Over).await.unwrap(), 3);
    assert_eq!(
        statuses(&world, &customer).await,
        [MessageStatus::Unknown; 3]
    );
    // What its last holder learnt comes late: only the names count.
    let outcomes = [taken_as("one"), refused(), SubmitOutcome::NotSent];
    let results = claimed
        .iter()
        .zip(outcomes)
        .map(|(message, outcome)| answered(message, outcome));
    let taken = world.record("acme", &lease, results.collect()).await;
    assert!(taken.is_empty());
    assert_eq!(
        statuses(&world, &customer).await,
        [MessageStatus::Unknown; 3]
    );
    let named = "SELECT COUNT(*) FROM segments WHERE carrier_message_id = 'one'";
    assert_eq!(world.database.number(named).await, 1);
    world.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_is_expanded_by_several_processes_without_doubling() {
    let world = World::new().await;
    let customer = world.active("one@example.org", "1000").await;
    let (a, b) = (world.service.clone(), peer(&world, 1).await);
    let file = rows(20_000);
    let accepted = upload(&a, &customer.live, None, &file, plain())
        .await
        .unwrap();
    let id = accepted.batchid.unwrap();
    // B alone, then both.
    b.expand(id).await.unwrap();
    while let Some(id) = b.next_unexpanded(None).await.unwrap() {
        let (one, two) = tokio::join!(a.expand(id), b.expand(id));
        one.unwrap();
        two.unwrap();
    }
    assert_eq!(
        world.database.number("SELECT COUNT(*) FROM messages").await,
        20_000
    );
    assert_eq!(
        world.database.number("SELECT COUNT(*) FROM queue").await,
        20_000
    );
    assert_eq!(world.balance(&customer.live).await, money("0"));
    world.database.assert_spools(0).await;
    world.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn others_go_on_with_the_upload_of_a_process_that_vanished() {
    let world = World::new().await;
    let customer = world.active("one@example.org", "1000").await;
    let gone = peer(&world, 1).await;
    let ticket = gone
        .begin_bulk(Some(customer.live.expose()), None)
        .await
        .unwrap();
    let accepted = upload(&gone, &customer.live, None, &rows(9000), plain())
        .await
        .unwrap();
    let id = accepted.batchid.unwrap();
    gone.expand(id).await.unwrap();
    // In the middle of a step: it is whole or isn't.
    let step = tokio::spawn({
        let gone = gone.clone();
        async move { gone.expand(id).await }
    });
    tokio::task::yield_now().await;
    step.abort();
    std::mem::forget((gone, ticket));
    world.expand_all().await;
    assert_eq!(
        world.database.number("SELECT COUNT(*) FROM messages").await,
        9000
    );
    assert_eq!(
        world.database.number("SELECT COUNT(*) FROM uploads").await,
        1
    );
    // What it had under way ends with it.
    world.pass(31_000);
    world.service.renew_node().await.unwrap();
    assert!(world.service.nodes_ended().await.unwrap());
    assert_eq!(
        world.database.number("SELECT COUNT(*) FROM uploads").await,
        0
    );
    world.database.assert_spools(0).await;
    world.assert_sound().await;
}

#[tokio::test]
async fn a_process_that_is_not_seen_is_given_up_and_takes_another_number() {
    const LIVING: &str = "SELECT COUNT(*) FROM nodes WHERE token <> 0";
    const CONNECTIONS: &str = "SELECT COUNT(*) FROM connections";
    let world = World::new().await;
    let customer = world.active("one@example.org", "5").await;
    let (a, b) = (world.service.clone(), peer(&world, 1).await);
    let send = async |service: &Service| {
        let sent = service
            .send(request(&customer.live, "12345678", "hello"))
            .await;
        slot(sent.unwrap().transid.unwrap().0)
    };
    let connection = ConnectionRecord {
        carrier: SANDBOX_CARRIER.to_owned(),
        node: 0,
        number: 1,
        state: ConnectionState::Bound,
        since: world.now(),
        in_flight: 0,
        window: 10,
        rate: 0,
        throttled: 0,
        last_error: None,
        updated_at: world.now(),
    };
    a.report_connections(vec![connection.clone()])
        .await
        .unwrap();
    b.report_connections(vec![connection]).await.unwrap();
    assert_eq!(world.database.number(CONNECTIONS).await, 2);
    let before = send(&a).await;
    world.pass(30_000);
    b.renew_node().await.unwrap();
    assert!(
        !b.nodes_ended().await.unwrap(),
        "half a minute isn't too long"
    );
    world.pass(1);
    assert!(b.nodes_ended().await.unwrap());
    assert!(!b.nodes_ended().await.unwrap(), "said once");
    assert_eq!(world.database.number(LIVING).await, 1);
    assert_eq!(world.database.number(CONNECTIONS).await, 1);
    // It only slept.
    assert_eq!(send(&a).await, before);
    a.renew_node().await.unwrap();
    assert_eq!(world.database.number(LIVING).await, 2);
    let after = send(&a).await;
    assert!(after != before && after != send(&b).await);
    // One that ends says so.
    b.close().await;
    assert_eq!(world.database.number(LIVING).await, 1);
    assert!(a.nodes_ended().await.unwrap());
    assert_eq!(world.database.number(CONNECTIONS).await, 0);
    world.assert_sound().await;
}

#[tokio::test]
async fn work_for_others_wakes_them() {
    let world = World::new().await;
    let customer = world.active("one@example.org", "50").await;
    let b = peer(&world, 1).await;
    // Until it listens, it hears nothing.
    let queued = b.queued();
    let first = async {
        loop {
            world.send(&customer.live, "12345678").await.unwrap();
            let wait = tokio::time::timeout(Duration::from_millis(200), queued.notified());
            if wait.await.is_ok() {
                return;
            }
        }
    };
    tokio::time::timeout(SOON, first).await.unwrap();
    let batch = b.batch_accepted();
    upload(&world.service, &customer.live, None, &rows(2), plain())
        .await
        .unwrap();
    tokio::time::timeout(SOON, batch.notified()).await.unwrap();
    let reinstated = b.reinstated();
    world
        .service
        .suspend(&STAFF, customer.reference, "a reason")
        .await
        .unwrap();
    world
        .service
        .reinstate(&STAFF, customer.reference)
        .await
        .unwrap();
    tokio::time::timeout(SOON, reinstated.notified())
        .await
        .unwrap();
}

/// All that a process does besides sending, over and over.
async fn work(service: Service, seed: u64, done: Arc<AtomicBool>) {
    let entropy = Entropy::seeded(seed);
    let mut claims: Vec<(service::Lease, Vec<Claimed>)> = Vec::new();
    while !done.load(Ordering::Relaxed) {
        let claim = service.claim("acme", 40).await.unwrap();
        claims.push(claim);
        let place = usize::try_from(entropy.number() % claims.len() as u64).unwrap();
        let (lease, claimed) = claims.swap_remove(place);
        let outcome = |message: &Claimed| match entropy.number() % 4 {
            0 => refused(),
            1 => SubmitOutcome::NotSent,
            _ => taken_as(&format!("{}", message.id)),
        };
        let results: Vec<_> = claimed
            .iter()
            .map(|message| Submitted {
                lease,
                ..answered(message, outcome(message))
            })
            .rev()
            .collect();
        service.record_submitted("acme", results).await.unwrap();
        // Also of what was held for too long, and of what the carrier never took.
        let receipts = claimed.iter().map(|message| CarrierReceipt {
            names: vec![message.id.to_string()],
            status: MessageStatus::Delivered,
            error: None,
            user_reference: None,
            number: String::new(),
            sender: String::new(),
            submitted_at: None,
        });
        let receipts = receipts.collect();
        service
            .record_carrier_receipts("acme", receipts)
            .await
            .unwrap();
        service.end_leases(Leases::Over).await.unwrap();
        service.expire().await.unwrap();
        if let Some(id) = service.next_unexpanded(None).await.unwrap() {
            service.expand(id).await.unwrap();
        }
    }
}

/// A deadlock or a conflict is the service's to sort out: nobody is told of it.
#[tokio::test(flavor = "multi_thread")]
async fn no_verb_fails_because_others_are_at_it() {
    const SENDS: usize = 250;
    // The server looks for deadlocks when somebody has waited for so long: by default a second.
    const SOON_SEEN: &str = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = 20', \
                             current_database()); END $$";
    let world = World::with(one_carrier()).await;
    world
        .database
        .connect()
        .await
        .execute(SOON_SEEN)
        .await
        .unwrap();
    let mut customers = Vec::new();
    for n in 0..6 {
        customers.push(world.active(&format!("{n}@example.org"), "100").await);
    }
    let limits = Limits {
        // Each lease ends while it is answered, or before.
        lease_ms: 1,
        ..Limits::default()
    };
    let services = [
        peer_with(&world, 1, limits).await,
        peer_with(&world, 2, limits).await,
        peer_with(&world, 3, limits).await,
    ];
    let done = Arc::new(AtomicBool::new(false));
    let mut workers = Vec::new();
    for (seed, service) in (0..).zip(&services) {
        for more in [0, 100] {
            workers.push(tokio::spawn(work(
                service.clone(),
                seed + more,
                Arc::clone(&done),
            )));
        }
    }
    for n in 0..SENDS {
        let sends = customers
            .iter()
            .zip(services.iter().cycle().skip(n))
            .map(|(customer, service)| service.send(request(&customer.live, "12345678", "hello")));
        let deposits: Vec<_> = customers
            .iter()
            .rev()
            .map(|customer| {
                order(
                    &format!("{n} {}", customer.reference),
                    customer.reference.as_str(),
                    "0.05",
                )
            })
            .collect();
        let (sent, imported) = tokio::join!(
            join_all(sends),
            services[n % 3].import_deposits(&STAFF, &deposits),
        );
        assert!(sent.iter().all(Result::is_ok), "{sent:?}");
        assert_eq!(imported.unwrap().credited, customers.len());
        world.pass(1);
        if n % 25 == 0 {
            let (customer, service) = (&customers[n % 6], &services[n % 3]);
            upload(service, &customer.live, None, &rows(50), plain())
                .await
                .unwrap();
            service
                .suspend(&STAFF, customers[0].reference, "a reason")
                .await
                .unwrap();
            service
                .reinstate(&STAFF, customers[0].reference)
                .await
                .unwrap();
        }
    }
    done.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await.unwrap();
    }
    world.expand_all().await;
    world.assert_sound().await;
    world.pass(49 * HOUR_MS);
    services[0].end_leases(Leases::All).await.unwrap();
    world.service.expire().await.unwrap();
    world.assert_sound().await;
}

#[tokio::test]
async fn a_command_of_another_release_changes_nothing() {
    let world = World::new().await;
    let mut conn = world.database.connect().await;
    for (change, word) in [
        ("version = 9999", "newer release"),
        ("version = 0", "older release"),
        ("version = 1, checksum = '\\x00'", "earlier build"),
    ] {
        let change = format!("UPDATE _sqlx_migrations SET {change}");
        conn.execute(AssertSqlSafe(change)).await.unwrap();
        let refused = Service::open_beside(world.config()).await.err().unwrap();
        assert!(refused.to_string().contains(word), "{refused}");
    }
    for refused in [
        Service::open(world.config()).await.err(),
        Service::migrate(&world.database.url()).await.err(),
    ] {
        assert!(matches!(refused, Some(OpenError::EarlierBuild)));
    }
}
