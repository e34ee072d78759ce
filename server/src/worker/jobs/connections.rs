//! Watches the connections to carriers. Decides which carriers may get messages, and reports the
//! states of the connections to operators.

mod health;
mod probes;
mod refusals;
mod standing;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::Timestamp;
use domain::records::{ConnectionRecord, ConnectionState};
use service::{Result, Service};
use tokio::time::Instant;

use super::work::{Next, Work, attempt};
use crate::carrier::ConnectionStatus;
use crate::carrier::refused::Refused;
use crate::metrics::Metrics;
use crate::worker::context::Context;
use crate::worker::watched::{WatchedCarrier, WatchedCarriers};
use health::{Health, SeenError, Waiting};
use probes::Probes;
use refusals::ReportedRefusals;
use standing::Standings;

/// How long a connection may be lost before messages take another route. A lost connection is often
/// back soon.
const LOST_GRACE: Duration = Duration::from_secs(2);
/// If the carrier asks for a longer pause than this, the connection counts as unusable.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// The time over which lost connections are counted.
const FLAPPING_TIME: Duration = Duration::from_mins(10);
/// A connection that was lost this often within [`FLAPPING_TIME`] is flapping.
const FLAPPING_MIN: u64 = 5;
/// A connection is no longer flapping after it has stayed bound for this long.
const STEADY_TIME: Duration = Duration::from_mins(2);
/// How often the states are written even if nothing has changed. If a process stops writing them,
/// other processes assume that it has ended and ignore its connections.
const WRITE_INTERVAL: Duration = Duration::from_secs(5);
/// The shortest time over which the rate of responses is measured.
const RATE_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct Watch {
    metrics: Arc<Metrics>,
    carriers: WatchedCarriers,
    /// The connections of other processes when they were last read. `None` until the first read.
    elsewhere: Option<Vec<ConnectionRecord>>,
    reported: Vec<(Arc<WatchedCarrier>, Reported)>,
    standings: Standings,
    /// The records that were written last.
    written: Vec<ConnectionRecord>,
    written_at: Option<Instant>,
}

/// The state of a carrier that is kept between two runs.
struct Reported {
    connections: Vec<Seen>,
    health: Health,
    probes: Probes,
    refused: ReportedRefusals,
    /// When the carrier became unusable. `None` while it is usable.
    unusable_since: Option<Instant>,
}

/// The state of a connection that is kept between two runs.
struct Seen {
    /// How often the connection had been lost until the last run.
    lost: u64,
    /// The times within [`FLAPPING_TIME`] at which the connection was lost.
    losses: VecDeque<Instant>,
    bound_at: Instant,
    /// The number of responses at the last measurement of the rate.
    answered: u64,
    measured_at: Instant,
    /// Responses per second.
    rate: i64,
}

impl Watch {
    pub(super) fn new(metrics: Arc<Metrics>, carriers: WatchedCarriers) -> Self {
        Self {
            metrics,
            carriers,
            elsewhere: None,
            reported: Vec::new(),
            standings: Standings::default(),
            written: Vec::new(),
            written_at: None,
        }
    }

    /// Follows a reload of the settings, which may add and remove carriers.
    fn follow_carriers(&mut self) {
        let carriers = self.carriers.list();
        let is_in = |list: &[Arc<WatchedCarrier>], one: &Arc<WatchedCarrier>| {
            list.iter().any(|other| Arc::ptr_eq(one, other))
        };
        self.reported.retain(|(known, _)| is_in(&carriers, known));
        let known: Vec<_> = self.reported.iter().map(|(known, _)| Arc::clone(known)).collect();
        let new = carriers.into_iter().filter(|carrier| !is_in(&known, carrier));
        self.reported.extend(new.map(|carrier| {
            let reported = Reported::of(&carrier);
            (carrier, reported)
        }));
    }
}

#[async_trait]
impl Work for Watch {
    async fn run(&mut self, context: &Context, _woken: bool) -> Result<Next> {
        let service = &context.service;
        let records = self.look(service).await;
        let old = (self.written_at).is_none_or(|at| at.elapsed() >= WRITE_INTERVAL);
        if old || !alike(&records, &self.written) {
            let delivery = service.delivery();
            let written = delivery.report_connections(records.clone());
            let failed = "the state of connections can't be written";
            if attempt(failed, written).await.is_some() {
                (self.written, self.written_at) = (records, Some(Instant::now()));
            }
        }
        Ok(Next::AfterInterval)
    }
}

impl Watch {
    /// Reads the states of the connections, and decides which carriers may get messages.
    async fn look(&mut self, service: &Service) -> Vec<ConnectionRecord> {
        self.follow_carriers();
        let failed = "the drained carriers can't be read";
        if let Some(drained) = attempt(failed, service.delivery().drained_carriers()).await {
            for (carrier, _) in &self.reported {
                carrier.update(&drained);
            }
        }
        let failed = "the connections of other processes can't be read";
        // After a failed read, the connections from the last successful read still count. Otherwise
        // a carrier that only other processes serve would become unusable.
        if let Some(read) = attempt(failed, service.delivery().connections_elsewhere()).await {
            self.elsewhere = Some(read);
        }
        let elsewhere = self.elsewhere.as_deref();
        let counts = service.delivery().carrier_counts();
        let mut records = Vec::new();
        for (watched, reported) in &mut self.reported {
            let states: Vec<_> = watched.connections.iter().map(|read| read()).collect();
            reported.report_refusals(service, &self.metrics, &watched.carrier, &states);
            let counts = counts.get(&watched.carrier).copied().unwrap_or_default();
            if reported.health.misses_receipts() {
                let failed = "the figures of carriers can't be read";
                let recent = attempt(failed, service.delivery().recent_counts()).await;
                let recent = recent.and_then(|recent| recent.get(&watched.carrier).copied());
                if let Some(recent) = recent {
                    reported.health.hear(recent.hour.all_receipts(), &counts);
                }
            }
            if reported.health.update(counts, Waiting::of(&states)) {
                reported.probes.hurry();
            }
            let others = elsewhere.unwrap_or_default().iter();
            let others: Vec<_> = others.filter(|c| c.carrier == watched.carrier).collect();
            if elsewhere.is_some() {
                watched.paces.share_with(processes(&others));
            }
            reported.decide(service, watched, &states, &others);
            let now = service.clock().now();
            let seen = states.into_iter().zip(&reported.connections);
            let health = &reported.health;
            let standings = &mut self.standings;
            records.extend((1..).zip(seen).map(|(number, (state, seen))| {
                let lost = state.lost;
                let mut record = record(&watched.carrier, number, &state, seen, health, now);
                standings.update(&mut record, lost);
                record
            }));
        }
        self.standings.forget();
        records
    }
}

/// Returns the number of processes that have connections to a carrier. A connection that is down
/// counts, too, because it may be back at any time. `others` are the connections of other
/// processes.
fn processes(others: &[&ConnectionRecord]) -> u32 {
    let nodes: BTreeSet<i64> = others.iter().map(|connection| connection.node).collect();
    u32::try_from(nodes.len() + 1).unwrap_or(u32::MAX)
}

impl Reported {
    fn of(watched: &WatchedCarrier) -> Self {
        Self {
            connections: watched.connections.iter().map(|_| Seen::new()).collect(),
            health: Health::new(watched.health),
            unusable_since: None,
            probes: Probes::default(),
            refused: ReportedRefusals::default(),
        }
    }

    /// Decides whether the carrier may get messages. If not, decides whether it may get a message
    /// as a probe.
    fn decide(
        &mut self,
        service: &Service,
        watched: &WatchedCarrier,
        states: &[ConnectionStatus],
        others: &[&ConnectionRecord],
    ) {
        let (mut usable, mut probed, mut takes_probe) = (false, false, false);
        for (state, seen) in states.iter().zip(&mut self.connections) {
            usable |= seen.update(state);
        }
        let degraded = self.health.degraded().is_some() || self.is_flapping();
        for state in states {
            probed |= state.state == ConnectionState::Probing;
            let is_idle = state.state == ConnectionState::Bound && state.in_flight == 0;
            takes_probe |= state.takes_probe || (degraded && is_idle);
        }
        // A connection of another process makes the carrier usable, too: that process submits the
        // messages.
        for other in others {
            usable |= other.state == ConnectionState::Bound;
            let is_probed = other.state.is_degraded() || degraded;
            takes_probe |= is_probed && other.in_flight == 0;
        }
        usable &= watched.is_open() && !degraded;
        takes_probe &= watched.is_open() && !usable;
        self.log(service, watched, usable, states);
        service.delivery().set_usable(&watched.carrier, usable);
        self.probes.update(service, &watched.carrier, takes_probe);
        if self.probes.ended(probed) && !usable {
            // The probe failed. Messages that were queued for the carrier meanwhile may take
            // another route now.
            service.routes_changed().notify_one();
        }
    }

    /// Whether each of the carrier's connections is lost again and again.
    fn is_flapping(&self) -> bool {
        !self.connections.is_empty() && self.connections.iter().all(Seen::is_flapping)
    }

    /// Returns why the carrier is degraded: its health is bad, or all its connections are flapping.
    /// Returns `None` if it isn't degraded.
    fn degraded_reason(&self, last_error: SeenError<'_>) -> Option<String> {
        let reason = self.health.degraded().map(|degraded| degraded.reason(last_error).0);
        reason.or_else(|| {
            let lost = self.connections.iter().map(|seen| seen.losses.len()).sum::<usize>();
            self.is_flapping().then(|| lost_often(lost))
        })
    }

    /// Logs when the carrier becomes unusable, and when it is usable again.
    fn log(
        &mut self,
        service: &Service,
        watched: &WatchedCarrier,
        usable: bool,
        states: &[ConnectionStatus],
    ) {
        let carrier = &watched.carrier;
        match self.unusable_since {
            None if !usable && watched.is_open() => {
                self.unusable_since = Some(Instant::now());
                let last_error = newest_error(states);
                let reason = self.degraded_reason(last_error);
                let last_error = last_error.map(|(error, _)| error);
                let has_other = service.delivery().has_other_carrier(carrier);
                match (reason, has_other) {
                    (Some(reason), true) => tracing::warn!(
                        carrier,
                        "a carrier is degraded: {reason}. Messages take other routes if they can. \
                         One message at a time tests the carrier"
                    ),
                    (Some(reason), false) => tracing::warn!(
                        carrier,
                        "a carrier is degraded: {reason}. No other carrier can take its messages"
                    ),
                    (None, true) => tracing::warn!(
                        carrier,
                        last_error,
                        "a carrier accepts no messages now. Messages take other routes if they can"
                    ),
                    (None, false) => tracing::warn!(
                        carrier,
                        last_error,
                        "a carrier accepts no messages now. Its messages wait, because no other \
                         carrier can take them"
                    ),
                }
            }
            Some(since) if usable => {
                self.unusable_since = None;
                tracing::info!(carrier, after_s = since.elapsed().as_secs(), "a carrier is back");
            }
            _ => {}
        }
    }

    fn report_refusals(
        &mut self,
        service: &Service,
        metrics: &Metrics,
        carrier: &str,
        states: &[ConnectionStatus],
    ) {
        let mut refused = Refused::default();
        for state in states {
            refused.add(&state.refused);
        }
        self.refused.update(service, carrier, &refused);
        metrics.set_refused(carrier, refused.counts());
        metrics.set_lost(carrier, states.iter().map(|state| state.lost).sum());
    }
}

impl Seen {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            lost: 0,
            losses: VecDeque::new(),
            bound_at: now,
            answered: 0,
            measured_at: now,
            rate: 0,
        }
    }

    /// Notes new losses of the connection, and forgets old ones.
    fn count_losses(&mut self, lost: u64) {
        let now = Instant::now();
        let new = lost.saturating_sub(std::mem::replace(&mut self.lost, lost));
        self.losses.extend((0..new).map(|_| now));
        let is_steady = self.losses.back().is_some_and(|at| now - *at >= STEADY_TIME);
        if is_steady && self.is_flapping() {
            self.losses.clear();
        }
        while self.losses.front().is_some_and(|at| now - *at > FLAPPING_TIME) {
            self.losses.pop_front();
        }
    }

    /// Returns whether the connection was lost again and again.
    fn is_flapping(&self) -> bool {
        self.losses.len() as u64 >= FLAPPING_MIN
    }

    /// Adds the number of losses to the connection's last error if there were at least two. A
    /// connection that is bound but flapping becomes degraded, and its error begins with the
    /// losses.
    fn add_losses(&self, record: &mut ConnectionRecord) {
        let count = self.losses.len();
        if count < 2 {
            return;
        }
        let (lost, error) = (lost_often(count), record.last_error.take());
        if record.state == ConnectionState::Bound
            && self.is_flapping()
            && let Some(first) = self.losses.front()
        {
            record.state = ConnectionState::Degraded;
            let since_ms = i64::try_from(first.elapsed().as_millis()).unwrap_or(0);
            record.since = record.updated_at.plus_ms(-since_ms);
            let seen = error.map_or_else(String::new, |error| format!(". Last error: {error}"));
            record.last_error = Some(format!("{lost}{seen}"));
            return;
        }
        record.last_error = Some(match error {
            Some(error) => format!("{}. Besides, {lost}", error.trim_end_matches('.')),
            None => lost,
        });
    }

    /// Updates the connection's rate. Returns true if the connection may get messages.
    fn update(&mut self, state: &ConnectionStatus) -> bool {
        self.count_losses(state.lost);
        let now = Instant::now();
        let elapsed = now - self.measured_at;
        if elapsed >= RATE_INTERVAL {
            let answers = state.answered.saturating_sub(self.answered);
            let ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
            self.rate = i64::try_from(answers.saturating_mul(1000) / ms).unwrap_or(i64::MAX);
            (self.answered, self.measured_at) = (state.answered, now);
        }
        if state.state == ConnectionState::Bound {
            self.bound_at = now;
        }
        let pauses = state.throttled_until.is_some_and(|until| until - now > PAUSE_MAX);
        now - self.bound_at < LOST_GRACE && !pauses && state.held.is_none()
    }
}

/// Returns the error of a carrier's connections that was seen last.
fn newest_error(states: &[ConnectionStatus]) -> SeenError<'_> {
    let seen = states
        .iter()
        .filter_map(|state| state.last_error.as_deref().map(|error| (error, state.last_error_at)));
    seen.max_by_key(|(_, at)| *at)
}

/// Returns a sentence about a connection that was lost this often.
fn lost_often(count: usize) -> String {
    let minutes = FLAPPING_TIME.as_secs() / 60;
    format!("the connection was lost {count} times in the last {minutes} minutes")
}

fn owned(error: SeenError<'_>) -> Option<(String, Option<Instant>)> {
    error.map(|(error, at)| (error.to_owned(), at))
}

fn record(
    carrier: &str,
    number: i64,
    state: &ConnectionStatus,
    seen: &Seen,
    health: &Health,
    now: Timestamp,
) -> ConnectionRecord {
    let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let own_error = state.last_error.as_deref().map(|error| (error, state.last_error_at));
    let (shown, since, error) = match (health.degraded(), state.state) {
        (Some(degraded), ConnectionState::Bound) => {
            let (reason, at) = degraded.reason(own_error);
            (ConnectionState::Degraded, degraded.since, Some((reason, Some(at))))
        }
        // The carrier may have failed before the connection began to pause, bind or probe. So
        // operators see the earlier time.
        (
            Some(degraded),
            ConnectionState::Waiting | ConnectionState::Connecting | ConnectionState::Probing,
        ) => {
            let since = state.since.min(degraded.since);
            let is_newer = own_error.is_some_and(|(_, at)| at >= Some(degraded.noticed_at()));
            let error = (!is_newer).then(|| degraded.reason(own_error));
            let error = error.map(|(reason, at)| (reason, Some(at)));
            (state.state, since, error.or_else(|| owned(own_error)))
        }
        (None, ConnectionState::Bound) => {
            let since = health.recovered_at().map_or(state.since, |at| at.max(state.since));
            (state.state, since, owned(own_error))
        }
        _ => (state.state, state.since, owned(own_error)),
    };
    let (last_error, last_error_at) = error.unzip();
    let since_ms = i64::try_from(since.elapsed().as_millis()).unwrap_or(0);
    let mut record = ConnectionRecord {
        carrier: carrier.to_owned(),
        // The service sets the node when it stores the record.
        node: 0,
        number,
        state: shown,
        since: now.plus_ms(-since_ms),
        in_flight: count(state.in_flight),
        window: count(state.window),
        rate: seen.rate,
        throttled: i64::try_from(state.throttled).unwrap_or(i64::MAX),
        last_error,
        last_error_at: last_error_at
            .flatten()
            .map(|at| now.plus_ms(-i64::try_from(at.elapsed().as_millis()).unwrap_or(0))),
        updated_at: now,
    };
    seen.add_losses(&mut record);
    record
}

/// Returns true if no change must be visible to operators or other processes at once. A pending
/// probe is such a change: other processes must not send another one.
fn alike(now: &[ConnectionRecord], before: &[ConnectionRecord]) -> bool {
    let urgent = |c: &ConnectionRecord| {
        let probe = c.state == ConnectionState::Probing && c.in_flight > 0;
        (c.state, probe, c.throttled, c.last_error.clone())
    };
    now.iter().map(urgent).eq(before.iter().map(urgent))
}

#[cfg(test)]
mod tests;
