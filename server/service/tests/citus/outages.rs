//! Servers of the cluster fail while applications send. Applications in other shards aren't
//! affected, and every answer is true.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use domain::Reason;
use futures_util::future::join_all;
use service::{Network, SendError, Sent, Service};
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _, Executor as _, Row as _};
use testing::citus::OwnCluster;

use crate::database::{Database, SHARDS};
use crate::world::{Customer, World, money, request};

const LOST: &str = "worker-1";
/// After this time a commit group has given up the call that a worker doesn't answer.
const GIVEN_UP: Duration = Duration::from_secs(46);
/// More than an application can spend in a test.
const FUNDS: &str = "10000";
/// Longer than anything takes that works.
const SOON: Duration = Duration::from_mins(2);

/// A customer, and the location of its rows in the cluster.
struct Placed {
    customer: Customer,
    /// The URL of the database on the worker.
    worker: String,
    /// The table of applications there.
    applications: String,
}

/// Starts a cluster with a customer in each shard.
async fn cluster() -> (World, Vec<Placed>) {
    let own = tokio::task::spawn_blocking(OwnCluster::start).await.unwrap();
    let database = Database::alone(own).await;
    let network = Network::sandbox("266".to_owned(), "Heliograph".to_owned());
    let world = World::on(database, tempfile::tempdir().unwrap(), network).await;
    let mut placed = Vec::new();
    for n in 0..SHARDS {
        let customer = world.active(&format!("{n}@example.org"), FUNDS).await;
        placed.push(place(&world, customer).await);
    }
    (world, placed)
}

async fn place(world: &World, customer: Customer) -> Placed {
    let mut conn = world.database.connect().await;
    let find = format!(
        "SELECT s.shardid::bigint, n.nodeport::bigint \
         FROM accounts a, pg_dist_shard s JOIN pg_dist_placement p USING (shardid) \
         JOIN pg_dist_node n USING (groupid) \
         WHERE a.id = {} AND s.shardid \
             = get_shard_id_for_distribution_column('applications', a.shard)",
        customer.account.id
    );
    let row = conn.fetch_one(AssertSqlSafe(find)).await.unwrap();
    let (shard, port): (i64, i64) = (row.get(0), row.get(1));
    let servers = world.database.servers();
    let worker = servers.into_iter().find(|url| url.contains(&format!(":{port}/")));
    Placed { customer, worker: worker.unwrap(), applications: format!("applications_{shard}") }
}

/// The answers to an application's sends.
#[derive(Default)]
struct Answers {
    accepted: BTreeSet<i64>,
    refused: usize,
    /// Sends without an answer, because it wasn't known whether they were stored.
    lost: usize,
}

impl Answers {
    fn add(&mut self, answer: Result<Sent, SendError>) {
        match answer {
            Ok(sent) => assert!(self.accepted.insert(sent.transid.unwrap().0)),
            Err(SendError::Refused(reason)) => {
                assert_eq!(reason, Reason::Unavailable);
                self.refused += 1;
            }
            Err(SendError::Lost) => self.lost += 1,
        }
    }

    fn append(&mut self, mut more: Self) {
        self.accepted.append(&mut more.accepted);
        self.refused += more.refused;
        self.lost += more.lost;
    }

    /// Asserts that each accepted send is stored and charged once. A lost send may be stored.
    async fn assert_true(&self, world: &World, customer: &Customer) {
        let mut conn = world.database.connect().await;
        let ids = format!(
            "SELECT m.id FROM messages m JOIN applications a \
             ON a.id = m.application_id AND a.shard = m.shard WHERE a.reference = '{}'",
            customer.reference
        );
        let rows = conn.fetch_all(AssertSqlSafe(ids)).await.unwrap();
        let stored: BTreeSet<i64> = rows.iter().map(|row| row.get(0)).collect();
        assert!(stored.is_superset(&self.accepted), "an accepted send is lost");
        assert!(stored.len() <= self.accepted.len() + self.lost);
        let charged = i64::try_from(stored.len()).unwrap() * 50_000;
        let left = money(FUNDS).micros() - charged;
        assert_eq!(world.balance(&customer.live).await.micros(), left);
    }
}

/// Sends one message after the other until `done` is set.
async fn send_until(service: Service, customer: Customer, done: Arc<AtomicBool>) -> Answers {
    let mut answers = Answers::default();
    while !done.load(Ordering::Relaxed) {
        let order = request(&customer.live, "12345678", "hello");
        let answer = tokio::time::timeout(SOON, service.messages().send(order)).await.unwrap();
        answers.add(answer);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    answers
}

/// The sends of all customers while a server is down.
struct Load {
    done: Arc<AtomicBool>,
    sending: Vec<tokio::task::JoinHandle<Answers>>,
}

impl Load {
    fn begin(world: &World, placed: &[Placed]) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let sending = placed.iter().map(|placed| {
            let customer = placed.customer.clone();
            tokio::spawn(send_until(world.service.clone(), customer, Arc::clone(&done)))
        });
        Self { sending: sending.collect(), done }
    }

    async fn end(self) -> Vec<Answers> {
        self.done.store(true, Ordering::Relaxed);
        let answers = join_all(self.sending).await;
        answers.into_iter().map(Result::unwrap).collect()
    }
}

/// Asserts that the lost worker affected the applications in its shards and no others.
fn assert_affected(own: &OwnCluster, placed: &[Placed], answers: &[Answers]) {
    let mut affected = 0;
    for (placed, answers) in placed.iter().zip(answers) {
        if is_of(own, LOST, &placed.worker) {
            affected += 1;
            assert!(answers.refused + answers.lost > 0);
        } else {
            assert_eq!((answers.refused, answers.lost), (0, 0));
        }
    }
    assert!(affected > 0 && affected < placed.len());
}

/// Asserts that all applications can send again, and that every answer was true.
async fn assert_recovered(world: &World, placed: &[Placed], mut answers: Vec<Answers>) {
    assert_all_go_on(world, placed, &mut answers).await;
    for (placed, answers) in placed.iter().zip(&answers) {
        answers.assert_true(world, &placed.customer).await;
    }
    world.assert_sound().await;
}

/// Sends for each customer until a send is accepted.
async fn assert_all_go_on(world: &World, placed: &[Placed], answers: &mut [Answers]) {
    for (placed, answers) in placed.iter().zip(answers) {
        let began = Instant::now();
        loop {
            let answer = world.send(&placed.customer.live, "12345678").await;
            let went = answer.is_ok();
            answers.add(answer);
            if went {
                break;
            }
            assert!(began.elapsed() < SOON, "no send is accepted any more");
        }
    }
}

/// Whether a URL belongs to a database of this server.
fn is_of(own: &OwnCluster, server: &str, url: &str) -> bool {
    let port = |url: &str| url.rsplit_once(':').unwrap().1.split_once('/').unwrap().0.to_owned();
    port(&own.url_of(server)) == port(url)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_killed_affects_only_the_applications_in_its_shards() {
    let (world, placed) = cluster().await;
    let own = world.database.own();
    let load = Load::begin(&world, &placed);
    tokio::time::sleep(Duration::from_secs(2)).await;
    own.kill(LOST);
    tokio::time::sleep(Duration::from_secs(8)).await;
    let answers = load.end().await;
    assert_affected(own, &placed, &answers);
    own.start_again(LOST);
    assert_recovered(&world, &placed, answers).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_hangs_affects_only_the_applications_in_its_shards() {
    let (world, placed) = cluster().await;
    let own = world.database.own();
    let load = Load::begin(&world, &placed);
    tokio::time::sleep(Duration::from_secs(2)).await;
    own.freeze(LOST);
    tokio::time::sleep(GIVEN_UP).await;
    // The outcome of the sends that the worker never answered is still unknown. Later sends are
    // refused.
    let later = Load::begin(&world, &placed);
    tokio::time::sleep(Duration::from_secs(5)).await;
    own.thaw(LOST);
    let mut answers = later.end().await;
    assert_affected(own, &placed, &answers);
    for (answers, more) in answers.iter_mut().zip(load.end().await) {
        answers.append(more);
    }
    assert_recovered(&world, &placed, answers).await;
}

/// The workers' transactions wait for a row while the coordinator is killed. They commit when no
/// coordinator is left to be notified.
#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_that_is_killed_before_it_hears_of_a_commit_loses_nothing() {
    let (world, placed) = cluster().await;
    let own = world.database.own();
    let mut answers: Vec<Answers> = placed.iter().map(|_| Answers::default()).collect();
    let mut holding = Vec::new();
    for placed in &placed {
        let mut conn = AnyConnection::connect(&placed.worker).await.unwrap();
        let hold = format!("BEGIN; SELECT 1 FROM {} FOR UPDATE", placed.applications);
        conn.execute(AssertSqlSafe(hold)).await.unwrap();
        holding.push(conn);
    }
    let sending = placed.iter().map(|placed| {
        let (service, key) = (world.service.clone(), placed.customer.live.clone());
        tokio::spawn(
            async move { service.messages().send(request(&key, "12345678", "hello")).await },
        )
    });
    let sending: Vec<_> = sending.collect();
    for one in &placed {
        let of_worker = placed.iter().filter(|other| other.worker == one.worker);
        until_wait(&one.worker, of_worker.count()).await;
    }
    own.kill("coordinator");
    for mut conn in holding {
        conn.execute("COMMIT").await.unwrap();
    }
    own.start_again("coordinator");
    for (answers, sending) in answers.iter_mut().zip(sending) {
        let answer = tokio::time::timeout(SOON, sending).await.unwrap().unwrap();
        answers.add(answer);
    }
    assert_recovered(&world, &placed, answers).await;
}

/// Waits until this many sessions on a worker wait for locks.
async fn until_wait(worker: &str, count: usize) {
    const WAITING: &str = "SELECT count(*) FROM pg_stat_activity \
        WHERE wait_event_type = 'Lock' AND datname = current_database()";
    let mut conn = AnyConnection::connect(worker).await.unwrap();
    let began = Instant::now();
    loop {
        let row = conn.fetch_one(WAITING).await.unwrap();
        if row.get::<i64, _>(0) >= i64::try_from(count).unwrap() {
            return;
        }
        assert!(began.elapsed() < SOON, "too few sessions wait");
    }
}
