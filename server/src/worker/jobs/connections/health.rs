//! Decides from a carrier's answers and receipts, and from their absence, whether the carrier is
//! degraded.
//!
//! Messages that another route matches take that route, except one message at a time, as a probe.
//! The carrier recovers when several probes in a row succeed. Until then, it may fail in other
//! ways, too. Operators see the newest failure, because they must act on that one.

use std::collections::VecDeque;
use std::time::Duration;

use domain::carrier_figures::{CarrierCounts, CarrierEvent};
use tokio::time::Instant;

use crate::carrier::ConnectionStatus;
use crate::config::carriers::HealthSettings;

/// The time over which the shares of bad answers and receipts are counted.
const WINDOW: Duration = Duration::from_secs(30);
/// A carrier with much traffic is also judged by this time alone. Otherwise, its earlier good
/// answers would hide for a long time that it has turned bad.
const SHORT_WINDOW: Duration = Duration::from_millis(1500);
/// The minimum number of answers, or of receipts, within [`SHORT_WINDOW`] to judge a carrier by.
const SHORT_MIN: u64 = 50;
/// The lowest limit for the share of bad ones within [`SHORT_WINDOW`], in percent.
const SHORT_PERCENT_MIN: u32 = 80;
/// The minimum number of answers, or of receipts, within [`WINDOW`] to judge a carrier by.
const JUDGED_MIN: u64 = 20;
/// A carrier that accepts nothing and throttles this often is degraded. The number is low, because
/// connections pause longer after each such answer.
const THROTTLED_MIN: u64 = 5;
/// How long such a carrier must have accepted nothing. A carrier with a limit per second can
/// throttle more often than [`THROTTLED_MIN`] within a second and still be well.
const THROTTLED_TIME: Duration = Duration::from_secs(1);
/// A carrier with little traffic is degraded if it refuses or defers this many submits in a row
/// over at least [`WINDOW`], or if [`JUDGED_MIN`] receipts in a row over that time report no
/// delivery.
const REFUSED_MIN: u64 = 10;
/// How often the number of receipts of all processes is compared with the number before.
const HEAR_INTERVAL: Duration = Duration::from_secs(2);
/// The number of probes that must succeed in a row.
const PROBES: u64 = 3;

/// The health of a carrier, as this process sees it.
pub(super) struct Health {
    settings: HealthSettings,
    /// The counts at earlier times of the window, oldest first.
    history: VecDeque<(Instant, CarrierCounts)>,
    /// The number of submits that the carrier had accepted at its last receipt.
    reported: u64,
    /// When the submits accepted since the last receipt reached [`JUDGED_MIN`].
    silent_since: Option<Instant>,
    /// When the receipts of all processes were last counted after `silent_since`, and how many
    /// there were.
    heard: Option<(Instant, u64)>,
    /// Since when and how often the carrier has throttled without accepting a message. Starts again
    /// after [`WINDOW`].
    throttled: Option<(Instant, u64)>,
    /// The submits that it has refused or deferred since it last accepted one.
    refused: Run,
    /// The receipts that report no delivery, since the last one that reports a delivery.
    undelivered: Run,
    /// The number of answers so far, and when it last grew.
    answered: u64,
    answered_at: Option<Instant>,
    degraded: Option<Degraded>,
    /// When it last recovered.
    recovered_at: Option<Instant>,
}

/// Why a carrier is degraded.
pub(super) struct Degraded {
    pub(super) since: Instant,
    /// The failures that the carrier hasn't recovered from, in the order in which they were
    /// noticed. Never empty.
    failures: Vec<Failure>,
}

/// The last error of a connection, and when it was seen if that is known.
pub(super) type SeenError<'a> = Option<(&'a str, Option<Instant>)>;

impl Degraded {
    /// Returns a sentence about the newest failure, and its time. The sentence includes the last
    /// error if the failure is an answer or the error is newer. The time is then the later one.
    pub(super) fn reason(&self, last_error: SeenError<'_>) -> (String, Instant) {
        let Some(Failure { cause, at, reason, .. }) = self.failures.last() else {
            return (String::new(), self.since);
        };
        let is_shown =
            |seen: Option<Instant>| cause.is_of_answers() || seen.is_some_and(|seen| seen > *at);
        match last_error {
            Some((error, seen)) if is_shown(seen) => {
                (format!("{reason}. Last error: {error}"), seen.map_or(*at, |seen| seen.max(*at)))
            }
            _ => (reason.clone(), *at),
        }
    }

    /// Returns when the newest failure was noticed.
    pub(super) fn noticed_at(&self) -> Instant {
        self.failures.last().map_or(self.since, |failure| failure.at)
    }
}

/// A failure of a carrier.
struct Failure {
    cause: Cause,
    since: Instant,
    /// When it was noticed.
    at: Instant,
    /// A sentence for operators.
    reason: String,
    /// The number of probes that succeeded since the last one that didn't.
    probes: u64,
}

/// Failures without a success between them: since when, and how many.
struct Run(Option<(Instant, u64)>);

impl Run {
    fn count(&mut self, now: Instant, failures: u64, successes: u64) {
        if successes > 0 {
            self.0 = None;
        } else if failures > 0 {
            self.0.get_or_insert((now, 0)).1 += failures;
        }
    }

    /// Returns the run if it is long enough to judge a carrier with little traffic by.
    fn if_long(&self, now: Instant, min: u64) -> Option<(Instant, u64)> {
        self.0.filter(|(since, count)| *count >= min && now - *since >= WINDOW)
    }
}

/// How a carrier fails. This also decides which results count as a probe's success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Throttled,
    Refused,
    /// Receipts report no delivery.
    Undelivered,
    /// No receipts come.
    Silent,
    /// No answers come.
    Unanswered,
}

impl Cause {
    /// Whether the carrier answers, but not as it should.
    const fn is_of_answers(self) -> bool {
        matches!(self, Self::Throttled | Self::Refused)
    }
}

/// The submits of a carrier that wait for its answers, on all connections of this process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waiting {
    count: usize,
    /// Since when a connection has got no answer although it waits for one.
    since: Option<Instant>,
    /// The number of answers since the start.
    answered: u64,
}

impl Waiting {
    pub(super) fn of(states: &[ConnectionStatus]) -> Self {
        Self {
            count: states.iter().map(|state| state.in_flight).sum(),
            since: states.iter().filter_map(|state| state.unanswered_since).min(),
            answered: states.iter().map(|state| state.answered).sum(),
        }
    }
}

impl Health {
    pub(super) const fn new(settings: HealthSettings) -> Self {
        Self {
            settings,
            history: VecDeque::new(),
            reported: 0,
            silent_since: None,
            heard: None,
            throttled: None,
            refused: Run(None),
            undelivered: Run(None),
            answered: 0,
            answered_at: None,
            degraded: None,
            recovered_at: None,
        }
    }

    /// Returns when the carrier last recovered.
    pub(super) const fn recovered_at(&self) -> Option<Instant> {
        self.recovered_at
    }

    pub(super) const fn degraded(&self) -> Option<&Degraded> {
        self.degraded.as_ref()
    }

    /// Judges the carrier by the counts since the start of the process, and by the submits that
    /// wait for an answer. Returns true if a probe succeeded, so that the next one may follow at
    /// once.
    pub(super) fn update(&mut self, counts: CarrierCounts, waiting: Waiting) -> bool {
        let now = Instant::now();
        let before = self.history.back().map_or(counts, |(_, counts)| *counts);
        let new = counts.since(&before);
        while self.history.front().is_some_and(|(at, _)| now - *at > WINDOW) {
            self.history.pop_front();
        }
        self.history.push_back((now, counts));
        self.listen(now, &counts, &new);
        self.count_throttled(now, &new);
        let refused = new.get(CarrierEvent::Refused) + new.get(CarrierEvent::Deferred);
        self.refused.count(now, refused, new.get(CarrierEvent::Accepted));
        self.undelivered.count(now, new.undelivered(), new.get(CarrierEvent::Delivered));
        if waiting.answered != self.answered {
            (self.answered, self.answered_at) = (waiting.answered, Some(now));
        }
        let succeeded = self.probed(&new);
        for failure in self.find(now, &counts, waiting) {
            self.note(failure);
        }
        succeeded
    }

    /// Returns all present failures. The last one tells an operator most about the cause.
    fn find(&self, now: Instant, counts: &CarrierCounts, waiting: Waiting) -> Vec<Failure> {
        let since = |from: Instant| {
            let start = self.history.iter().find(|(at, _)| *at >= from);
            counts.since(&start.map_or(*counts, |(_, counts)| *counts))
        };
        let ago = |window| now.checked_sub(window).unwrap_or(now);
        let (recent, latest) = (since(ago(WINDOW)), since(ago(SHORT_WINDOW)));
        let short = (SHORT_WINDOW, SHORT_MIN, SHORT_PERCENT_MIN);
        let long = (WINDOW, JUDGED_MIN, 0);
        let of_shares = [(&recent, long), (&latest, short)]
            .into_iter()
            .flat_map(|(counts, by)| self.judge(now, counts, by));
        let of_runs = self.judge_runs(now).into_iter();
        let found = of_runs.chain(self.silent(now, counts)).chain(of_shares);
        found.chain(self.throttled(now)).chain(self.unanswered(now, waiting)).collect()
    }

    /// Notes a failure, unless it is known. The carrier has been degraded since its first failure.
    fn note(&mut self, failure: Failure) {
        let since = failure.since;
        let degraded = self.degraded.get_or_insert(Degraded { since, failures: Vec::new() });
        if !degraded.failures.iter().any(|known| known.cause == failure.cause) {
            degraded.failures.push(failure);
        }
    }

    /// Whether this process lacks receipts, and should check whether other processes get them.
    pub(super) fn misses_receipts(&self) -> bool {
        self.settings.silent_seconds > 0
            && self.silent_since.is_some()
            && self.heard.is_none_or(|(at, _)| at.elapsed() >= HEAR_INTERVAL)
    }

    /// Takes the number of receipts that all processes got within the last hour. Only growth since
    /// the previous call shows that another process gets receipts: the first number includes
    /// receipts from before the silence.
    pub(super) fn hear(&mut self, receipts: u64, counts: &CarrierCounts) {
        let before = self.heard.replace((Instant::now(), receipts));
        if before.is_some_and(|(_, before)| receipts > before) {
            self.heard_receipts(counts);
            self.recover(|failure| failure.cause == Cause::Silent);
        }
    }

    fn heard_receipts(&mut self, counts: &CarrierCounts) {
        self.reported = counts.get(CarrierEvent::Accepted);
        (self.silent_since, self.heard) = (None, None);
    }

    /// Counts how often the carrier throttles without accepting a message.
    fn count_throttled(&mut self, now: Instant, new: &CarrierCounts) {
        if new.get(CarrierEvent::Accepted) > 0
            || self.throttled.is_some_and(|(since, _)| now - since > WINDOW)
        {
            self.throttled = None;
        }
        let throttled = new.get(CarrierEvent::Throttled);
        if throttled > 0 && new.get(CarrierEvent::Accepted) == 0 {
            let (_, count) = self.throttled.get_or_insert((now, 0));
            *count += throttled;
        }
    }

    /// Judges a carrier by the answers since it last accepted a message.
    fn throttled(&self, now: Instant) -> Option<Failure> {
        let (since, count) = self.throttled?;
        let is_all = count >= THROTTLED_MIN && now - since >= THROTTLED_TIME;
        let reason = format!(
            "the carrier throttled {count} submits and accepted none within {} s",
            (now - since).as_secs()
        );
        (is_all && self.settings.refused_percent > 0)
            .then(|| Failure::new(Cause::Throttled, since, now, reason))
    }

    /// Judges a carrier with little traffic by the failures since the last success.
    fn judge_runs(&self, now: Instant) -> Vec<Failure> {
        let HealthSettings { refused_percent, undelivered_percent, .. } = self.settings;
        let undelivered = self.undelivered.if_long(now, JUDGED_MIN);
        let undelivered = undelivered.filter(|_| undelivered_percent > 0).map(|(since, count)| {
            let reason = format!(
                "the last {count} receipts of the carrier, within {} s, report no delivery: \
                 compare their errors on the page of its receipts, and contact the carrier",
                (now - since).as_secs()
            );
            Failure::new(Cause::Undelivered, since, now, reason)
        });
        let refused = self.refused.if_long(now, REFUSED_MIN).filter(|_| refused_percent > 0);
        let refused = refused.map(|(since, count)| {
            let reason = format!(
                "the carrier refused or deferred the last {count} submits, all within {} s",
                (now - since).as_secs()
            );
            Failure::new(Cause::Refused, since, now, reason)
        });
        undelivered.into_iter().chain(refused).collect()
    }

    /// Notes since when receipts are missing.
    fn listen(&mut self, now: Instant, counts: &CarrierCounts, new: &CarrierCounts) {
        let accepted = counts.get(CarrierEvent::Accepted);
        if new.all_receipts() > 0 {
            self.heard_receipts(counts);
        } else if accepted - self.reported >= JUDGED_MIN && self.silent_since.is_none() {
            self.silent_since = Some(now);
        }
    }

    /// Judges a carrier by how long it has answered nothing on any connection of this process.
    fn unanswered(&self, now: Instant, waiting: Waiting) -> Option<Failure> {
        let since = waiting.since?.max(self.answered_at.unwrap_or(waiting.since?));
        let silence = now.saturating_duration_since(since);
        let reason = format!(
            "the carrier has answered nothing for {} s (submits that wait for its answer: {}): \
             contact the carrier. A message without an answer in time becomes unknown, and is \
             submitted again only if its application's settings say so",
            silence.as_secs(),
            waiting.count
        );
        (silence >= self.settings.unanswered_max()?)
            .then(|| Failure::new(Cause::Unanswered, since, now, reason))
    }

    /// Judges a carrier by the shares of bad answers and receipts within a time.
    fn judge(
        &self,
        now: Instant,
        recent: &CarrierCounts,
        (window, judged_min, percent_min): (Duration, u64, u32),
    ) -> Vec<Failure> {
        let HealthSettings { refused_percent, undelivered_percent, .. } = self.settings;
        let exceeds = |part: u64, all: u64, percent: u32| {
            let share = u64::from(percent.max(percent_min));
            percent > 0 && all >= judged_min && part * 100 > all * share
        };
        let within = window.as_secs_f32();
        let mut found = Vec::new();
        let (undelivered, receipts) = (recent.undelivered(), recent.receipts());
        if exceeds(undelivered, receipts, undelivered_percent) {
            let reason = format!(
                "{undelivered} of {receipts} receipts of the carrier, within {within} s, report no \
                 delivery: compare their errors on the page of its receipts, and contact the \
                 carrier"
            );
            found.push(Failure::new(Cause::Undelivered, now, now, reason));
        }
        let accepted = recent.get(CarrierEvent::Accepted);
        let (refused, deferred) =
            (recent.get(CarrierEvent::Refused), recent.get(CarrierEvent::Deferred));
        let (bad, all) = (refused + deferred, accepted + refused + deferred);
        if exceeds(bad, all, refused_percent) {
            let reason = format!(
                "the carrier refused {refused} and deferred {deferred} of {all} submits within \
                 {within} s"
            );
            found.push(Failure::new(Cause::Refused, now, now, reason));
        }
        found
    }

    /// Judges a carrier by the time without receipts.
    fn silent(&self, now: Instant, counts: &CarrierCounts) -> Option<Failure> {
        let (silent_seconds, since) = (self.settings.silent_seconds, self.silent_since?);
        let unreported = counts.get(CarrierEvent::Accepted) - self.reported;
        let reason = format!(
            "the carrier accepted {unreported} submits, and has sent no final receipt for {} s: \
             ask it to send receipts to this account, and check the page of its receipts",
            (now - since).as_secs()
        );
        (silent_seconds > 0 && (now - since).as_secs() >= silent_seconds)
            .then(|| Failure::new(Cause::Silent, now, now, reason))
    }

    /// Counts the new results as probes. Returns true if some succeeded and none failed.
    fn probed(&mut self, new: &CarrierCounts) -> bool {
        let Some(degraded) = &mut self.degraded else {
            return false;
        };
        let accepted = new.get(CarrierEvent::Accepted);
        let (refused, unanswered) = (new.not_accepted(), new.get(CarrierEvent::Unanswered));
        let (mut some, mut all) = (false, true);
        for failure in &mut degraded.failures {
            let (succeeded, failed) = match failure.cause {
                Cause::Throttled | Cause::Refused => (accepted, refused + unanswered),
                Cause::Unanswered => (accepted + refused, unanswered),
                Cause::Undelivered | Cause::Silent => {
                    (new.get(CarrierEvent::Delivered), new.undelivered())
                }
            };
            failure.probes = if failed > 0 { 0 } else { failure.probes + succeeded };
            some |= succeeded > 0;
            all &= failed == 0;
        }
        self.recover(|failure| failure.probes >= PROBES);
        some && all
    }

    /// Forgets the failures that the carrier has recovered from, and earlier counts, which would
    /// cause the failures again.
    fn recover(&mut self, is_over: impl Fn(&Failure) -> bool) {
        let Some(degraded) = &mut self.degraded else {
            return;
        };
        let before = degraded.failures.len();
        degraded.failures.retain(|failure| !is_over(failure));
        if degraded.failures.len() == before {
            return;
        }
        if degraded.failures.is_empty() {
            (self.degraded, self.recovered_at) = (None, Some(Instant::now()));
        }
        (self.throttled, self.refused, self.undelivered) = (None, Run(None), Run(None));
        let last = self.history.back().copied();
        self.history.clear();
        self.history.extend(last);
    }
}

impl Failure {
    const fn new(cause: Cause, since: Instant, at: Instant, reason: String) -> Self {
        Self { cause, since, at, reason, probes: 0 }
    }
}
