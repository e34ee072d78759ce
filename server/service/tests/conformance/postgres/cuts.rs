//! Connections to the database are cut. Every send is answered, and the answer is true.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::Reason;
use futures_util::future::join_all;
use service::{Actor, Config, Entropy, Limits, SANDBOX_CARRIER, SendError, Sent, Service};
use sqlx::{AnyConnection, Row as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::database::Backend;
use crate::uploads::{plain, rows};
use crate::world::{Customer, World, money, order, request};

const STAFF: Actor = Actor::CommandLine;

/// What the proxy does with a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Pass,
    /// Cuts the connection before the server gets the commit.
    Before,
    /// Cuts the connection as soon as the server has the commit.
    Within,
    /// Cuts the connection instead of passing on the server's answer.
    After,
    /// Delays the answer by this time.
    Late(Duration),
    /// Holds the commit, and cuts the connection once the test says so.
    Held,
}

/// A proxy to the server that can cut connections.
#[derive(Clone)]
pub struct Proxy {
    port: u16,
    pub state: Arc<State>,
}

pub struct State {
    server: String,
    /// For the next commits, in reverse order. Later commits pass.
    fates: Mutex<Vec<Fate>>,
    cut: AtomicUsize,
    /// Cuts each connection after a random number of bytes.
    random: Option<Entropy>,
    calm: AtomicBool,
    pub held: Notify,
    pub release: Notify,
}

/// The simple query that sqlx commits with.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";
/// The function that stores a commit group, which is also a commit. A connection prepares it once,
/// and then calls it with messages that begin with a Bind.
const GROUP: &[u8] = b"run_commit_group";

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

impl Proxy {
    pub async fn before(url: &str, random: Option<Entropy>) -> Self {
        let (_, after) = url.split_once('@').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let state = State {
            server: after.split('/').next().unwrap().to_owned(),
            fates: Mutex::default(),
            cut: AtomicUsize::new(0),
            random,
            calm: AtomicBool::new(true),
            held: Notify::new(),
            release: Notify::new(),
        };
        let proxy = Self { port: listener.local_addr().unwrap().port(), state: Arc::new(state) };
        let state = Arc::clone(&proxy.state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let state = Arc::clone(&state);
                tokio::spawn(async move {
                    if let Ok(server) = TcpStream::connect(&state.server).await {
                        state.relay(client, server).await;
                    }
                });
            }
        });
        proxy
    }

    /// Opens a service that connects through this proxy.
    pub async fn service(&self, world: &World, url: &str) -> Service {
        self.service_with(world, url, Limits::default()).await
    }

    pub async fn service_with(&self, world: &World, url: &str, limits: Limits) -> Service {
        let server = format!("127.0.0.1:{}", self.port);
        let config = Config {
            database_url: url.replace(&self.state.server, &server),
            entropy: Entropy::seeded(2_000_000),
            limits,
            ..world.config()
        };
        let service = Service::open(config).await.ok().unwrap();
        // As a process does when it starts, so that no send has to make the keys.
        service.accounts().load_keys().await.unwrap();
        service
    }

    pub fn next(&self, fate: Fate) {
        self.state.fates.lock().unwrap().push(fate);
    }
}

impl State {
    /// Passes on bytes until either side closes, or until the connection must be cut.
    async fn relay(&self, mut client: TcpStream, mut server: TcpStream) {
        let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
        let mut left = self.random.as_ref().map(|random| random.number() % 60_000);
        let mut is_of_groups = false;
        loop {
            let (bytes, to) = tokio::select! {
                count = client.read(&mut up) => (&up[..count.unwrap_or(0)], true),
                count = server.read(&mut down) => (&down[..count.unwrap_or(0)], false),
            };
            let mut fate = Fate::Pass;
            is_of_groups |= to && has(bytes, GROUP);
            let calls = is_of_groups && bytes.first() == Some(&b'B');
            if to && (calls || has(bytes, COMMIT)) {
                fate = self.fates.lock().unwrap().pop().unwrap_or(fate);
            }
            let mut bytes = bytes;
            if !self.calm.load(Ordering::Relaxed)
                && let Some(left) = &mut left
            {
                let fits = bytes.len().min(usize::try_from(*left).unwrap());
                *left -= fits as u64;
                bytes = &bytes[..fits];
            }
            if fate != Fate::Pass || left == Some(0) {
                self.cut.fetch_add(1, Ordering::Relaxed);
            }
            if fate == Fate::Held {
                self.held.notify_one();
                self.release.notified().await;
            }
            if bytes.is_empty() || fate == Fate::Before || fate == Fate::Held {
                return;
            }
            let written =
                if to { server.write_all(bytes).await } else { client.write_all(bytes).await };
            match fate {
                Fate::Within => return,
                Fate::After => {
                    let _ = server.read(&mut down).await;
                    return;
                }
                Fate::Late(delay) => tokio::time::sleep(delay).await,
                Fate::Pass | Fate::Before | Fate::Held => {}
            }
            if written.is_err() || left == Some(0) {
                return;
            }
        }
    }
}

/// The answers to sends.
#[derive(Default)]
struct Answers {
    accepted: BTreeSet<i64>,
    refused: usize,
}

impl Answers {
    fn add(&mut self, answer: Result<Sent, SendError>) {
        match answer {
            Ok(sent) => assert!(self.accepted.insert(sent.transid.unwrap().0)),
            Err(SendError::Refused(reason)) => {
                assert_eq!(reason, Reason::Unavailable);
                self.refused += 1;
            }
            Err(SendError::Lost) => panic!("the server could be asked"),
        }
    }

    async fn assert_true(&self, world: &World, customer: &Customer, before: &str) {
        let mut conn = world.database.connect().await;
        assert_eq!(stored(&mut conn).await, self.accepted);
        let charged = i64::try_from(self.accepted.len()).unwrap() * 50_000;
        let left = money(before).micros() - charged;
        assert_eq!(world.balance(&customer.live).await.micros(), left);
        world.assert_sound().await;
    }
}

/// Returns the IDs of single messages.
pub async fn stored(conn: &mut AnyConnection) -> BTreeSet<i64> {
    let rows = sqlx::query("SELECT id FROM messages WHERE batch_id IS NULL").fetch_all(conn).await;
    rows.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_send_is_answered_truly_when_the_connection_is_cut_during_its_commit() {
    let world = World::new(Backend::SHARED).await;
    let customer = world.active("one@example.org", "100").await;
    let proxy = Proxy::before(&world.database.url(), None).await;
    let service = proxy.service(&world, &world.database.url()).await;
    let mut answers = Answers::default();
    for n in 0..60 {
        let fate = [Fate::Before, Fate::Pass, Fate::After, Fate::Within][n % 4];
        proxy.next(fate);
        let answer = service.messages().send(request(&customer.live, "12345678", "hello")).await;
        assert!(answer.is_ok(), "{fate:?}");
        answers.add(answer);
    }
    assert_eq!(proxy.state.cut.load(Ordering::Relaxed), 45);
    answers.assert_true(&world, &customer, "100").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_is_answered_late_is_waited_for() {
    let world = World::new(Backend::SHARED).await;
    let customer = world.active("one@example.org", "100").await;
    let proxy = Proxy::before(&world.database.url(), None).await;
    let service = proxy.service(&world, &world.database.url()).await;
    let mut answers = Answers::default();
    proxy.next(Fate::Late(Duration::from_secs(3)));
    let messages = service.messages();
    let sends = (0..20).map(|_| messages.send(request(&customer.live, "12345678", "hello")));
    for answer in join_all(sends).await {
        answers.add(answer);
    }
    assert_eq!(answers.accepted.len(), 20);
    answers.assert_true(&world, &customer, "100").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_is_credited_once_when_the_connection_is_cut_during_its_commit() {
    let world = World::new(Backend::SHARED).await;
    let customer = world.active("one@example.org", "100").await;
    let proxy = Proxy::before(&world.database.url(), None).await;
    let service = proxy.service(&world, &world.database.url()).await;
    for n in 0..12 {
        let fate = [Fate::Before, Fate::Pass, Fate::After, Fate::Within][n % 4];
        let deposit = order(&n.to_string(), customer.reference.as_str(), "1");
        proxy.next(fate);
        let first = service.money().add_deposit(&STAFF, &deposit).await;
        assert!(fate == Fate::Within || first.is_ok() == (fate != Fate::Before), "{fate:?}");
        let again = service.money().add_deposit(&STAFF, &deposit).await.unwrap();
        assert_eq!(again.already, first.is_ok());
    }
    assert_eq!(world.balance(&customer.live).await, money("112"));
    world.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_is_answered_truly_when_the_connection_is_cut_during_its_commit() {
    let world = World::new(Backend::SHARED).await;
    let customer = world.active("one@example.org", "100").await;
    let proxy = Proxy::before(&world.database.url(), None).await;
    let service = proxy.service(&world, &world.database.url()).await;
    let mut accepted = 0;
    for fate in [Fate::Before, Fate::After, Fate::Before, Fate::After] {
        let ticket =
            service.messages().begin_bulk(Some(customer.live.expose()), None).await.unwrap();
        let (mode, writing) = (domain::BulkMode::OneToOne, domain::BulkWriting::Plain);
        let mut file = ticket.upload(mode, writing).await.unwrap();
        file.write(rows(5).as_bytes()).await.unwrap();
        let spooled = file.finish().await.unwrap();
        proxy.next(fate);
        let answer = service.messages().accept_batch(&ticket, spooled, plain()).await;
        assert_eq!(answer.is_ok(), fate == Fate::After);
        accepted += i64::from(answer.is_ok());
    }
    assert_eq!(world.database.number("SELECT COUNT(*) FROM batches").await, accepted);
    let spools = usize::try_from(accepted).unwrap();
    world.database.assert_spools(spools).await;
    // The answer is also true if the commit of an expansion is cut.
    for fate in [Fate::Before, Fate::After] {
        let id = service.messages().next_unexpanded(None).await.unwrap().unwrap();
        proxy.next(fate);
        assert_eq!(service.messages().expand(id).await.is_ok(), fate == Fate::After);
    }
    world.expand_all().await;
    assert_eq!(world.database.number("SELECT COUNT(*) FROM messages").await, accepted * 5);
    world.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_cut_at_any_byte_lose_and_double_no_send() {
    let world = World::new(Backend::SHARED).await;
    let customer = world.active("one@example.org", "1000").await;
    let proxy = Proxy::before(&world.database.url(), Some(Entropy::seeded(7))).await;
    let service = proxy.service(&world, &world.database.url()).await;
    proxy.state.calm.store(false, Ordering::Relaxed);
    let mut answers = Answers::default();
    let mut rounds = 0;
    while proxy.state.cut.load(Ordering::Relaxed) < 150 {
        rounds += 1;
        assert!(rounds < 2000);
        let messages = service.messages();
        let sends = (0..4).map(|_| messages.send(request(&customer.live, "12345678", "hello")));
        // These calls may fail, but must be atomic.
        let delivery = service.delivery();
        let (sent, _, _) =
            tokio::join!(join_all(sends), delivery.claim(SANDBOX_CARRIER, 3), delivery.expire());
        for answer in sent {
            answers.add(answer);
        }
    }
    proxy.state.calm.store(true, Ordering::Relaxed);
    assert!(answers.accepted.len() > 20);
    answers.assert_true(&world, &customer, "1000").await;
}
