//! Dispatch while a transaction is left open: nothing that it could see may be cleaned away, and
//! what is left must not be looked through again by each claim.

use std::time::Duration;

use sqlx::Executor as _;
use sqlx::postgres::PgConnection;
use tokio::runtime::Runtime;

use super::cluster::Cluster;
use super::start;
use crate::measured::p50_p99;
use crate::server::Server;
use crate::steady::Steady;
use crate::stored;
use crate::table::{Figure, Table, Target};
use crate::usage::Usage;

/// Minutes that the transaction stays open, where it isn't one.
const MINUTES: &str = "HOLD_MINUTES";
const PER_SECOND: u32 = 1000;
const WARM_UP: Duration = Duration::from_secs(10);
/// What is compared: without the transaction, and at the end of its time.
const WINDOW: Duration = Duration::from_secs(30);
/// Sees the database as it is now, until it ends.
const PIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT COUNT(*) FROM messages";

pub fn measure(table: &mut Table) {
    let minutes = std::env::var(MINUTES).map_or(1, |minutes| minutes.parse().unwrap());
    let held = Duration::from_mins(minutes);
    println!("{PER_SECOND} sends/s, submitted, with a transaction open for {held:?}");
    let server = start();
    let steady = Steady::start(&server, PER_SECOND);
    std::thread::sleep(WARM_UP);
    let free = Window::of(&server);
    let pinned = {
        let _pin = Pin::set(server.cluster().unwrap());
        std::thread::sleep(held.saturating_sub(WINDOW));
        Window::of(&server)
    };
    steady.stop();
    server.wait_until_final();
    let ratio = pinned.p99.as_secs_f64() / free.p99.as_secs_f64();
    let what = "PostgreSQL: p99 of acceptance to submission, a transaction open : none";
    let beside = [
        format!("its last {WINDOW:?}: {}", pinned.text),
        format!("none: {}", free.text),
    ];
    table.add_beside(what, Figure::Times(ratio), Target::AtMost(3.0), &beside);
    server.check();
}

/// An open transaction, and what its connection needs.
struct Pin {
    _connection: PgConnection,
    _runtime: Runtime,
}

impl Pin {
    fn set(cluster: &Cluster) -> Self {
        let runtime = Runtime::new().unwrap();
        let connection = runtime.block_on(async {
            let mut connection = cluster.connect().await;
            connection.execute(PIN).await.unwrap();
            connection
        });
        Self {
            _connection: connection,
            _runtime: runtime,
        }
    }
}

struct Window {
    p99: Duration,
    text: String,
}

impl Window {
    /// What was accepted from now on for a while.
    fn of(server: &Server) -> Self {
        let usage = || Usage::now(&server.processes(), server.work());
        let (before, from_ms) = (usage(), stored::now_ms());
        std::thread::sleep(WINDOW);
        let (after, until_ms) = (usage(), stored::now_ms());
        let times = stored::submitted(&server.database_url(), from_ms..until_ms);
        let messages = times.len() as u64;
        let cost = after.each_since(&before, messages);
        let (p50, p99) = p50_p99(times);
        let text = format!("p50 {p50:.0?} p99 {p99:.0?} of {messages} messages; {cost}");
        // The times are stored in milliseconds.
        let p99 = p99.max(Duration::from_millis(1));
        Self { p99, text }
    }
}
