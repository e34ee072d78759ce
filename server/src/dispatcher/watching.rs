//! How the connections are: whom messages may go to, and what operators see.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::Timestamp;
use domain::records::{ConnectionRecord, ConnectionState};
use service::Service;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::carrier::LineState;

/// How often to look.
const INTERVAL: Duration = Duration::from_millis(500);
/// How long a connection may be lost before messages go another way: it may be back in a moment.
const LOST_GRACE: Duration = Duration::from_secs(2);
/// A carrier that asks to pause for longer than this can't take messages.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How often the state is written even if nothing changed: what is old counts as gone.
const WRITE_INTERVAL: Duration = Duration::from_secs(5);

/// A carrier and its connections.
pub(super) struct Watched {
    pub(super) carrier: String,
    /// False while it is drained.
    pub(super) open: watch::Sender<bool>,
    pub(super) lines: Vec<Box<dyn Fn() -> LineState + Send + Sync>>,
}

/// What is remembered of a connection between two looks.
struct Seen {
    bound_at: Instant,
    answered: u64,
    looked_at: Instant,
    rate: i64,
}

/// Looks until the token is cancelled.
pub(super) async fn run(
    service: Service,
    carriers: Arc<Vec<Watched>>,
    shutdown: CancellationToken,
) {
    let mut seen: HashMap<(usize, usize), Seen> = HashMap::new();
    let (mut written, mut written_at) = (Vec::new(), None::<Instant>);
    while !shutdown.is_cancelled() {
        let drained = service.drained().notified();
        let records = look(&service, &carriers, &mut seen).await;
        let old = written_at.is_none_or(|at| at.elapsed() >= WRITE_INTERVAL);
        if old || !alike(&records, &written) {
            match service.report_connections(records.clone()).await {
                Ok(()) => (written, written_at) = (records, Some(Instant::now())),
                Err(error) => {
                    tracing::error!(detail = ?error, "the state of connections can't be written");
                }
            }
        }
        tokio::select! {
            () = drained => {}
            () = tokio::time::sleep(INTERVAL) => {}
            () = shutdown.cancelled() => {}
        }
    }
}

async fn look(
    service: &Service,
    carriers: &[Watched],
    seen: &mut HashMap<(usize, usize), Seen>,
) -> Vec<ConnectionRecord> {
    let drained = match service.drained_carriers().await {
        Ok(drained) => Some(drained),
        Err(error) => {
            tracing::error!(detail = ?error, "which carriers are drained can't be read");
            None
        }
    };
    let elsewhere = match service.bound_elsewhere().await {
        Ok(elsewhere) => elsewhere,
        Err(error) => {
            tracing::error!(detail = ?error, "what other processes are bound to can't be read");
            Vec::new()
        }
    };
    let mut records = Vec::new();
    for (place, watched) in carriers.iter().enumerate() {
        if let Some(drained) = &drained {
            let open = !drained.contains(&watched.carrier);
            watched
                .open
                .send_if_modified(|was| std::mem::replace(was, open) != open);
        }
        // Another process takes what this one can't hand over.
        let mut usable = elsewhere.contains(&watched.carrier);
        for (number, line) in watched.lines.iter().enumerate() {
            let state = line();
            let seen = seen.entry((place, number)).or_insert_with(Seen::new);
            usable |= seen.update(&state);
            records.push(record(
                &watched.carrier,
                number,
                state,
                seen,
                service.clock().now(),
            ));
        }
        service.set_usable(&watched.carrier, usable && *watched.open.borrow());
    }
    records
}

impl Seen {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            bound_at: now,
            answered: 0,
            looked_at: now,
            rate: 0,
        }
    }

    /// Whether messages may be meant for it.
    fn update(&mut self, state: &LineState) -> bool {
        let now = Instant::now();
        let elapsed = now - self.looked_at;
        if elapsed >= Duration::from_secs(1) {
            let answers = state.answered.saturating_sub(self.answered);
            let ms = u64::try_from(elapsed.as_millis())
                .unwrap_or(u64::MAX)
                .max(1);
            self.rate = i64::try_from(answers.saturating_mul(1000) / ms).unwrap_or(i64::MAX);
            (self.answered, self.looked_at) = (state.answered, now);
        }
        if state.state == ConnectionState::Bound {
            self.bound_at = now;
        }
        let pauses = state
            .throttled_until
            .is_some_and(|until| until - now > PAUSE_MAX);
        now - self.bound_at < LOST_GRACE && !pauses
    }
}

fn record(
    carrier: &str,
    number: usize,
    state: LineState,
    seen: &Seen,
    now: Timestamp,
) -> ConnectionRecord {
    let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let since_ms = i64::try_from(state.since.elapsed().as_millis()).unwrap_or(0);
    ConnectionRecord {
        carrier: carrier.to_owned(),
        // The service knows.
        node: 0,
        number: count(number) + 1,
        state: state.state,
        since: now.plus_ms(-since_ms),
        in_flight: count(state.in_flight),
        window: count(state.window),
        rate: seen.rate,
        throttled: i64::try_from(state.throttled).unwrap_or(i64::MAX),
        last_error: state.last_error,
        updated_at: now,
    }
}

/// Whether nothing happened that must be seen at once.
fn alike(now: &[ConnectionRecord], before: &[ConnectionRecord]) -> bool {
    let told = |c: &ConnectionRecord| (c.state, c.throttled, c.last_error.clone());
    now.iter().map(told).eq(before.iter().map(told))
}
