//! Dispatch while another transaction stays open. PostgreSQL can't remove old rows that this
//! transaction could still see, and claims must not scan these rows again and again.

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

/// The variable with the minutes that the transaction stays open; one if it isn't set.
const MINUTES: &str = "HOLD_MINUTES";
const PER_SECOND: u32 = 1000;
const WARM_UP: Duration = Duration::from_secs(10);
/// The length of the compared windows: one without the transaction, one before the transaction
/// ends.
const WINDOW: Duration = Duration::from_secs(30);
/// Takes a snapshot of the database and keeps it until the transaction ends.
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
    let what = "PostgreSQL: p99 from acceptance to submission, a transaction open : none";
    let beside = [format!("its last {WINDOW:?}: {}", pinned.text), format!("none: {}", free.text)];
    table.add_beside(what, Figure::Times(ratio), Target::AtMost(3.0), &beside);
    server.check();
}

/// An open transaction, with its connection and runtime.
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
        Self { _connection: connection, _runtime: runtime }
    }
}

struct Window {
    p99: Duration,
    text: String,
}

impl Window {
    /// Measures the messages accepted from now until the end of the window.
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
        // Times are stored in milliseconds.
        let p99 = p99.max(Duration::from_millis(1));
        Self { p99, text }
    }
}
