//! Claims while a transaction is left open: nothing that it could see may be cleaned away, and what is left must not be
//! looked through again by each claim.

use std::time::{Duration, Instant};

use service::{SANDBOX_CARRIER, Service};
use sqlx::{Connection as _, Executor as _};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::cluster::Cluster;
use super::verbs::{Verbs, record_delivered, record_taken};
use super::{block_on, distribution};
use crate::row;

/// Minutes that the transaction stays open, where it isn't one.
const MINUTES: &str = "HOLD_MINUTES";
/// A send each: a thousand a second.
const PAUSE_OF_SENDS: Duration = Duration::from_millis(1);
const WARM_UP: Duration = Duration::from_secs(10);
/// Whose claims are compared: without the transaction, and at the end of its time.
const WINDOW: Duration = Duration::from_secs(30);
const ROWS: i64 = 200;
/// As the dispatcher's claims, which leave a moment to others.
const GATHER: Duration = Duration::from_millis(10);
const NOTHING_QUEUED: Duration = Duration::from_millis(100);
/// Sees the database as it is now, until it ends.
const PIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT COUNT(*) FROM queue";

pub fn measure() {
    let minutes = std::env::var(MINUTES).map_or(1, |minutes| minutes.parse().unwrap());
    let held = Duration::from_mins(minutes);
    println!(
        "\nPostgreSQL: claims during {} sends/s, by `Service::claim`, with a transaction open for {held:?}",
        Duration::from_secs(1).div_duration_f64(PAUSE_OF_SENDS)
    );
    let cluster = Cluster::start();
    block_on(async {
        let verbs = Verbs::on(&cluster).await;
        let service = &verbs.service;
        let sending = send(&verbs);
        claims_within(service, WARM_UP).await;
        let free = Window::of(service).await;
        let mut pin = cluster.connect().await;
        pin.execute(PIN).await.unwrap();
        claims_within(service, held.saturating_sub(WINDOW)).await;
        let pinned = Window::of(service).await;
        pin.execute("ROLLBACK").await.unwrap();
        pin.close().await.unwrap();
        sending.abort();
        let ratio = pinned.p99.div_duration_f64(free.p99);
        let what = format!("{WINDOW:?} without it");
        row(&what, free.figure, "");
        let what = format!("its last {WINDOW:?}");
        let figure = format!("{ratio:.2} × p99, {}", pinned.figure);
        row(&what, figure, "≤ 3 ×");
        let broken = service.check().await.unwrap();
        assert!(broken.is_empty(), "{broken:?}");
        service.close().await;
    });
}

struct Window {
    p99: Duration,
    figure: String,
}

impl Window {
    async fn of(service: &Service) -> Self {
        let started = Instant::now();
        let (times, messages) = claims_within(service, WINDOW).await;
        let (p50, p99, claims) = distribution(times);
        let per_second = f64::from(messages) / started.elapsed().as_secs_f64();
        let figure =
            format!("p50 {p50:.1?} p99 {p99:.1?} of {claims} claims, {per_second:.0} messages/s");
        Self { p99, figure }
    }
}

/// Sends steadily until it is aborted.
fn send(verbs: &Verbs) -> JoinHandle<()> {
    let (service, request) = (verbs.service.clone(), verbs.request());
    tokio::spawn(async move {
        let mut ticks = interval(PAUSE_OF_SENDS);
        // The rate counts, not the moment.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        loop {
            ticks.tick().await;
            let (service, request) = (service.clone(), request.clone());
            tokio::spawn(async move { service.send(request).await.unwrap() });
        }
    })
}

/// Claims what is sent, stores that it was taken and delivered, and goes on: the times of the claims, and how many
/// messages they gave.
async fn claims_within(service: &Service, duration: Duration) -> (Vec<Duration>, u32) {
    let until = Instant::now() + duration;
    let (mut times, mut count) = (Vec::new(), 0);
    while Instant::now() < until {
        let queued = service.queued().notified();
        let started = Instant::now();
        let (lease, messages) = service.claim(SANDBOX_CARRIER, ROWS).await.unwrap();
        let took = started.elapsed();
        if messages.is_empty() {
            let _ = timeout(NOTHING_QUEUED, queued).await;
            continue;
        }
        times.push(took);
        count += u32::try_from(messages.len()).unwrap();
        record_taken(service, lease, &messages).await;
        record_delivered(service, &messages).await;
        sleep(GATHER).await;
    }
    (times, count)
}
