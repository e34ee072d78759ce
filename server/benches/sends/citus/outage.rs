//! Kills a worker while all applications send at a steady pace. Applications on the other worker
//! must not notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sqlx::Connection as _;
use testing::citus::{OwnCluster, is_built};

use super::{APPLICATIONS, MISSING, SHARDS, WORKERS, start};
use crate::load::Talker;
use crate::measured::p50_p99;
use crate::postgres::cluster::Cluster;
use crate::server::{Server, sends_by};
use crate::stored::{self, block_on};
use crate::table::{Figure, Table, Target, float};

const LOST: &str = "worker-1";
const WARM_UP: Duration = Duration::from_secs(5);
const OUTAGE: Duration = Duration::from_mins(1);
/// The time that the other applications have until their answers must be fast again.
const GRACE: Duration = Duration::from_secs(2);
/// The time to send after the worker is back.
const AFTERWARDS: Duration = Duration::from_secs(20);
/// Connections per application, so that it keeps sending while an answer is slow.
const CONNECTIONS: u32 = 4;
/// The pause between two sends on a connection.
const PAUSE: Duration = Duration::from_millis(200);

const UNAVAILABLE: u16 = 503;

pub fn measure(table: &mut Table) {
    if !is_built() {
        return table.not_measured("Citus: a worker killed for a minute", MISSING);
    }
    println!(
        "{SHARDS} shards over {WORKERS} workers, {APPLICATIONS} applications, each sends {:.0}/s",
        f64::from(CONNECTIONS) / PAUSE.as_secs_f64()
    );
    let server = start(Cluster::with_workers(WORKERS), SHARDS);
    let own = server.cluster().and_then(Cluster::citus).unwrap();
    let lost: Vec<bool> = server.keys().iter().map(|key| is_on(LOST, own, key)).collect();
    let stored_before = stored::messages(own.url.as_str());
    let began = Instant::now();
    let sending = Sending::start(&server);
    std::thread::sleep(WARM_UP);
    own.kill(LOST);
    let killed = Instant::now();
    std::thread::sleep(OUTAGE);
    let back = Instant::now();
    own.start_again(LOST);
    std::thread::sleep(AFTERWARDS);
    let answers = sending.stop();
    let at = Times { began, killed, back };
    server.wait_until_final();
    let (of_lost, others): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| lost[answer.application]);
    others_go_on(&others, &at, table);
    its_own(&of_lost, &at, table);
    let stored = stored::messages(&own.url) - stored_before;
    all_true(&answers, stored, table);
    server.check();
}

/// When the sends began, when the worker was killed, and when it was started again.
struct Times {
    began: Instant,
    killed: Instant,
    back: Instant,
}

fn others_go_on(others: &[&Answer], at: &Times, table: &mut Table) {
    let bad = |answer: &&&Answer| answer.status != Some(200);
    let bad = others.iter().filter(bad).count() as u64;
    let what = "Citus, a worker killed: other applications' answers that weren't 200";
    table.add(what, Figure::Count(float(bad)), Target::AtMost(0.0));
    let times = |from: Instant, until: Instant| {
        let within = |answer: &&&Answer| from <= answer.due && answer.due < until;
        let within = others.iter().filter(within);
        p50_p99(within.map(|answer| answer.took).collect())
    };
    let before = times(at.began, at.killed);
    let first = times(at.killed, at.killed + GRACE);
    let (p50, p99) = times(at.killed + GRACE, at.back);
    let longest = others.iter().map(|answer| answer.took).max();
    let beside = [
        format!("p50 {p50:.1?}; before: p50 {:.1?} p99 {:.1?}", before.0, before.1),
        format!(
            "in the first {GRACE:?}: p50 {:.1?} p99 {:.1?}; the longest of all: {:.1?}",
            first.0,
            first.1,
            longest.unwrap_or_default()
        ),
    ];
    let what = "Citus, a worker killed: p99 of other applications, after 2 s";
    table.add_beside(what, Figure::millis(p99), Target::AtMost(100.0), &beside);
}

fn its_own(of_lost: &[&Answer], at: &Times, table: &mut Table) {
    let meanwhile =
        |answer: &&&Answer| at.killed <= answer.due && answer.due + answer.took < at.back;
    let meanwhile: Vec<_> = of_lost.iter().filter(meanwhile).collect();
    // A send gets no answer only if the outcome of its commit is unknown. `all_true` checks that.
    let other = |answer: &&&&Answer| answer.status.is_some_and(|status| status != UNAVAILABLE);
    let other = meanwhile.iter().filter(other).count() as u64;
    let times = meanwhile.iter().map(|answer| answer.took).collect();
    let (p50, p99) = p50_p99(times);
    let back = of_lost
        .iter()
        .filter(|answer| answer.due >= at.back && answer.status == Some(200))
        .map(|answer| answer.due + answer.took - at.back)
        .min();
    let back = back.map_or("never".to_owned(), |time| format!("after {time:.1?}"));
    let beside = [
        format!("of {} answers, p50 {p50:.1?} p99 {p99:.1?}", meanwhile.len()),
        format!("first send accepted after the worker came back: {back}"),
    ];
    let what = "Citus, a worker killed: its applications' answers that weren't 503";
    let other = Figure::Count(float(other));
    table.add_beside(what, other, Target::AtMost(0.0), &beside);
}

/// Checks that all accepted messages are stored, and that the only other stored messages are some
/// that got no answer.
fn all_true(answers: &[Answer], stored: u64, table: &mut Table) {
    let with = |status| {
        let answers = answers.iter().filter(|answer| answer.status == status);
        answers.count() as u64
    };
    let (accepted, unanswered) = (with(Some(200)), with(None));
    let lost = accepted.saturating_sub(stored);
    let unasked = stored.saturating_sub(accepted + unanswered);
    let what = "Citus, a worker killed: messages lost, or stored though refused";
    let beside = [format!("{accepted} accepted, {unanswered} without an answer, {stored} stored")];
    let wrong = Figure::Count(float(lost + unasked));
    table.add_beside(what, wrong, Target::AtMost(0.0), &beside);
}

/// Returns whether the shard of the key's application is on `worker`.
fn is_on(worker: &str, own: &OwnCluster, key: &str) -> bool {
    const PORT: &str = "SELECT CAST(n.nodeport AS BIGINT) \
        FROM reference_shards r, \
             pg_dist_shard s JOIN pg_dist_placement p USING (shardid) JOIN pg_dist_node n USING (groupid) \
        WHERE r.reference = $1 \
          AND s.shardid = get_shard_id_for_distribution_column('applications', r.shard)";
    let port: i64 = block_on(async {
        let mut db = stored::connect(&own.url).await;
        // A key begins with its application's reference.
        let query = sqlx::query_scalar(PORT).bind(key[..6].to_owned());
        let port = query.fetch_one(&mut db).await.unwrap();
        db.close().await.unwrap();
        port
    });
    own.url_of(worker).contains(&format!(":{port}/"))
}

struct Answer {
    /// The index of the application.
    application: usize,
    due: Instant,
    /// The time from when the send was due.
    took: Duration,
    /// `None` if there was no answer.
    status: Option<u16>,
}

/// Sends of all applications until [`Sending::stop`].
struct Sending {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<Answer>>>,
}

impl Sending {
    fn start(server: &Server) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let apart = PAUSE / CONNECTIONS / u32::try_from(server.keys().len()).unwrap();
        let mut due = Instant::now();
        let keys = (0..CONNECTIONS).flat_map(|_| server.keys().iter().enumerate());
        let start = |(application, key): (usize, &String)| {
            due += apart;
            let sender =
                Sender { application, key: key.clone(), address: server.address().to_owned(), due };
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || sender.run(&stop))
        };
        let threads = keys.map(start).collect();
        Self { stop, threads }
    }

    fn stop(self) -> Vec<Answer> {
        self.stop.store(true, Ordering::SeqCst);
        let answers = self.threads.into_iter().map(|thread| thread.join().unwrap());
        answers.flatten().collect()
    }
}

struct Sender {
    application: usize,
    key: String,
    address: String,
    due: Instant,
}

impl Sender {
    fn run(mut self, stop: &AtomicBool) -> Vec<Answer> {
        let mut requests = sends_by(std::slice::from_ref(&self.key));
        let mut talker = Talker::connect(&self.address);
        let mut answers = Vec::new();
        while !stop.load(Ordering::SeqCst) {
            std::thread::sleep(self.due.saturating_duration_since(Instant::now()));
            let status = talker.status_of(requests.next());
            if status.is_none() {
                talker = Talker::connect(&self.address);
            }
            answers.push(Answer {
                application: self.application,
                due: self.due,
                took: self.due.elapsed(),
                status,
            });
            // Sends missed because of a slow answer aren't made up for.
            self.due = (self.due + PAUSE).max(Instant::now());
        }
        answers
    }
}
