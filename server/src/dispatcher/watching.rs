//! How the connections are: whom messages may go to, and what operators see.

use std::sync::Arc;
use std::time::Duration;

use domain::Timestamp;
use domain::records::{ConnectionRecord, ConnectionState};
use service::Service;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::probing::Probing;
use super::refusals::ReportedRefusals;
use crate::carrier::LineState;
use crate::carrier::refused::Refused;
use crate::metrics::Metrics;

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
    carrier: String,
    /// False while it is drained, and until that was read once: what is drained must not be handed
    /// anything at a start.
    pub(super) open: watch::Sender<bool>,
    lines: Vec<StateOfLine>,
}

type StateOfLine = Box<dyn Fn() -> LineState + Send + Sync>;

/// What is remembered of a carrier between two looks.
struct Remembered {
    lines: Vec<Seen>,
    probing: Probing,
    refused: ReportedRefusals,
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
    metrics: Arc<Metrics>,
    carriers: Arc<Vec<Watched>>,
    shutdown: CancellationToken,
) {
    let mut remembered: Vec<_> = carriers.iter().map(Remembered::of).collect();
    let (mut written, mut written_at) = (Vec::new(), None::<Instant>);
    while !shutdown.is_cancelled() {
        let drained = service.drained().notified();
        let records = look(&service, &metrics, &carriers, &mut remembered).await;
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

/// Looks once, and acts on what is seen; how the connections are.
async fn look(
    service: &Service,
    metrics: &Metrics,
    carriers: &[Watched],
    remembered: &mut [Remembered],
) -> Vec<ConnectionRecord> {
    match service.drained_carriers().await {
        Ok(drained) => carriers.iter().for_each(|watched| watched.heed(&drained)),
        Err(error) => {
            tracing::error!(detail = ?error, "which carriers are drained can't be read");
        }
    }
    let elsewhere = match service.connections_elsewhere().await {
        Ok(elsewhere) => elsewhere,
        Err(error) => {
            tracing::error!(detail = ?error, "what other processes are bound to can't be read");
            Vec::new()
        }
    };
    let mut records = Vec::new();
    for (watched, remembered) in carriers.iter().zip(remembered) {
        let states: Vec<_> = watched.lines.iter().map(|line| line()).collect();
        let others = elsewhere.iter().filter(|c| c.carrier == watched.carrier);
        remembered.decide(service, watched, &states, others);
        remembered.tell_refusals(metrics, &watched.carrier, &states);
        for (number, (state, seen)) in states.into_iter().zip(&remembered.lines).enumerate() {
            let now = service.clock().now();
            records.push(record(&watched.carrier, number, state, seen, now));
        }
    }
    records
}

impl Watched {
    pub(super) fn new(carrier: String, lines: Vec<StateOfLine>) -> Self {
        Self {
            carrier,
            open: watch::Sender::new(false),
            lines,
        }
    }

    fn heed(&self, drained: &[String]) {
        let open = !drained.contains(&self.carrier);
        self.open
            .send_if_modified(|was| std::mem::replace(was, open) != open);
    }

    fn is_open(&self) -> bool {
        *self.open.borrow()
    }
}

impl Remembered {
    fn of(watched: &Watched) -> Self {
        Self {
            lines: watched.lines.iter().map(|_| Seen::new()).collect(),
            probing: Probing::default(),
            refused: ReportedRefusals::default(),
        }
    }

    /// Decides whether messages may be meant for the carrier, or one of them to probe it.
    fn decide<'a>(
        &mut self,
        service: &Service,
        watched: &Watched,
        states: &[LineState],
        others: impl Iterator<Item = &'a ConnectionRecord>,
    ) {
        let (mut usable, mut probed, mut takes_probe) = (false, false, false);
        for (state, seen) in states.iter().zip(&mut self.lines) {
            usable |= seen.update(state);
            probed |= state.state == ConnectionState::Probing;
            takes_probe |= state.takes_probe;
        }
        // Another process takes what this one can't hand over.
        for other in others {
            usable |= other.state == ConnectionState::Bound;
            takes_probe |= other.state == ConnectionState::Probing && other.in_flight == 0;
        }
        usable &= watched.is_open();
        takes_probe &= watched.is_open() && !usable;
        service.set_usable(&watched.carrier, usable);
        self.probing.update(service, &watched.carrier, takes_probe);
        if self.probing.ended(probed) && !usable {
            // What else was queued for it meanwhile goes another way.
            service.routes_changed().notify_one();
        }
    }

    fn tell_refusals(&mut self, metrics: &Metrics, carrier: &str, states: &[LineState]) {
        let mut refused = Refused::default();
        for state in states {
            refused.add(&state.refused);
        }
        self.refused.update(carrier, &refused);
        metrics.refused.set(carrier, refused.counts().clone());
    }
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

/// Whether nothing happened that must be seen at once. Whether a probe is under way concerns other
/// processes too.
fn alike(now: &[ConnectionRecord], before: &[ConnectionRecord]) -> bool {
    let told = |c: &ConnectionRecord| {
        let probe = c.state == ConnectionState::Probing && c.in_flight > 0;
        (c.state, probe, c.throttled, c.last_error.clone())
    };
    now.iter().map(told).eq(before.iter().map(told))
}

#[cfg(test)]
mod tests;
