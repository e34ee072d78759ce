//! Decides from a carrier's answers and receipts, and from their absence, whether the carrier is
//! degraded.
//!
//! A degraded carrier gets one message at a time, as a probe, if another route matches the others.
//! It recovers when several probes in a row succeed.

use std::collections::VecDeque;
use std::time::Duration;

use domain::carrier_figures::{CarrierCounts, CarrierEvent};
use tokio::time::Instant;

use crate::carrier::ConnectionStatus;
use crate::config::carriers::HealthSettings;

/// The time over which shares are counted.
const WINDOW: Duration = Duration::from_secs(30);
/// A carrier with much traffic is also judged by this time alone. Otherwise, the good answers before
/// would hide for long that it has turned bad.
const SHORT_WINDOW: Duration = Duration::from_millis(1500);
/// The minimum number of answers, or of receipts, to judge a carrier by this time, and the least
/// share of bad ones in percent.
const SHORT_MIN: u64 = 50;
const SHORT_PERCENT_MIN: u32 = 80;
/// The minimum number of answers, or of receipts, to judge a carrier by.
const JUDGED_MIN: u64 = 20;
/// A carrier that accepts nothing and throttles this often is degraded. Pauses lengthen after each
/// such answer, so they are few.
const THROTTLED_MIN: u64 = 5;
/// The number of probes that must succeed in a row.
const PROBES: u64 = 3;

/// The health of a carrier, as this process sees it.
pub(super) struct Health {
    settings: HealthSettings,
    /// The counts at earlier times of the window, oldest first.
    history: VecDeque<(Instant, CarrierCounts)>,
    /// The number of messages that the carrier had accepted at its last receipt.
    reported: u64,
    /// Since when it has accepted enough messages after that to be judged.
    silent_since: Option<Instant>,
    /// The number of answers so far, and when it last grew.
    answered: u64,
    answered_at: Option<Instant>,
    degraded: Option<Degraded>,
}

/// Why a carrier is degraded.
pub(super) struct Degraded {
    pub(super) since: Instant,
    /// A sentence for operators.
    pub(super) reason: String,
    evidence: Evidence,
    /// The number of probes that succeeded since the last failure.
    probes: u64,
}

/// What shows that a carrier is degraded, and later that it has recovered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Evidence {
    Answers,
    Receipts,
    /// There are no receipts.
    Silence,
    /// There are no answers.
    Unanswered,
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
            answered: 0,
            answered_at: None,
            degraded: None,
        }
    }

    pub(super) const fn degraded(&self) -> Option<&Degraded> {
        self.degraded.as_ref()
    }

    /// Considers the counts since the start of the process, the messages that wait for an answer,
    /// and the last error of a connection. Returns true if a probe succeeded, so that the next one
    /// may follow at once.
    pub(super) fn update(
        &mut self,
        counts: CarrierCounts,
        waiting: Waiting,
        last_error: Option<&str>,
    ) -> bool {
        let now = Instant::now();
        let before = self.history.back().map_or(counts, |(_, counts)| *counts);
        let new = counts.since(&before);
        while self.history.front().is_some_and(|(at, _)| now - *at > WINDOW) {
            self.history.pop_front();
        }
        self.history.push_back((now, counts));
        self.listen(now, &counts, &new);
        if waiting.answered != self.answered {
            (self.answered, self.answered_at) = (waiting.answered, Some(now));
        }
        if self.degraded.is_some() {
            return self.probed(&new);
        }
        let since = |from: Instant| {
            let start = self.history.iter().find(|(at, _)| *at >= from);
            counts.since(&start.map_or(counts, |(_, counts)| *counts))
        };
        let ago = |window| now.checked_sub(window).unwrap_or(now);
        let (recent, latest) = (since(ago(WINDOW)), since(ago(SHORT_WINDOW)));
        self.degraded = self
            .unanswered(now, waiting)
            .or_else(|| {
                let short = (SHORT_WINDOW, SHORT_MIN, SHORT_PERCENT_MIN);
                self.judge(now, &counts, &latest, short, last_error)
            })
            .or_else(|| self.judge(now, &counts, &recent, (WINDOW, JUDGED_MIN, 0), last_error));
        false
    }

    /// Whether this process misses receipts that other processes may have got.
    pub(super) fn misses_receipts(&self) -> bool {
        let is_silent = |degraded: &Degraded| degraded.evidence == Evidence::Silence;
        let seconds = self.settings.silent_seconds;
        self.degraded.as_ref().is_some_and(is_silent)
            || seconds > 0
                && self.silent_since.is_some_and(|since| since.elapsed().as_secs() + 1 >= seconds)
    }

    /// Notes that another process got receipts lately.
    pub(super) fn hear(&mut self, counts: &CarrierCounts) {
        (self.reported, self.silent_since) = (counts.get(CarrierEvent::Accepted), None);
        self.degraded.take_if(|degraded| degraded.evidence == Evidence::Silence);
    }

    /// Notes since when receipts are missing.
    fn listen(&mut self, now: Instant, counts: &CarrierCounts, new: &CarrierCounts) {
        let accepted = counts.get(CarrierEvent::Accepted);
        if new.receipts() > 0 {
            (self.reported, self.silent_since) = (accepted, None);
        } else if accepted - self.reported >= JUDGED_MIN && self.silent_since.is_none() {
            self.silent_since = Some(now);
        }
    }

    /// Judges a carrier by the time that it has answered nothing. Answers on another connection
    /// count.
    fn unanswered(&self, now: Instant, waiting: Waiting) -> Option<Degraded> {
        let since = waiting.since?.max(self.answered_at.unwrap_or(waiting.since?));
        let silence = now.saturating_duration_since(since);
        (silence >= self.settings.unanswered_max()?).then(|| Degraded {
            since,
            reason: format!(
                "the carrier has answered nothing for {} s, and {} messages wait for its answer: \
                 contact the carrier. They aren't submitted again. Without an answer in time they \
                 become unknown",
                silence.as_secs(),
                waiting.count
            ),
            evidence: Evidence::Unanswered,
            probes: 0,
        })
    }

    fn judge(
        &self,
        now: Instant,
        counts: &CarrierCounts,
        recent: &CarrierCounts,
        (window, judged_min, percent_min): (Duration, u64, u32),
        last_error: Option<&str>,
    ) -> Option<Degraded> {
        let HealthSettings { refused_percent, undelivered_percent, silent_seconds, .. } =
            self.settings;
        let degraded =
            |evidence, reason| Some(Degraded { since: now, reason, evidence, probes: 0 });
        let exceeds = |part: u64, all: u64, percent: u32| {
            let share = u64::from(percent.max(percent_min));
            percent > 0 && all >= judged_min && part * 100 > all * share
        };
        let within = window.as_secs_f32();
        let accepted = recent.get(CarrierEvent::Accepted);
        let throttled = recent.get(CarrierEvent::Throttled);
        let refused = recent.not_accepted() - throttled;
        if exceeds(refused, accepted + refused, refused_percent) {
            let all = accepted + refused;
            let last =
                last_error.map_or_else(String::new, |error| format!(". Last error: {error}"));
            return degraded(
                Evidence::Answers,
                format!("the carrier refused {refused} of {all} messages within {within} s{last}"),
            );
        }
        let throttled_min = if window == WINDOW { THROTTLED_MIN } else { judged_min };
        if refused_percent > 0 && accepted == 0 && throttled >= throttled_min {
            return degraded(
                Evidence::Answers,
                format!(
                    "the carrier throttled all of {throttled} messages within {within} s: lower \
                     \"rate\", or ask the carrier which rate it allows"
                ),
            );
        }
        let (undelivered, receipts) = (recent.undelivered(), recent.receipts());
        if exceeds(undelivered, receipts, undelivered_percent) {
            return degraded(
                Evidence::Receipts,
                format!(
                    "the carrier failed to deliver {undelivered} of {receipts} messages, as its \
                     receipts of the last {within} s say: compare their errors on the page of its \
                     receipts, and contact the carrier"
                ),
            );
        }
        let since = self.silent_since?;
        let unreported = counts.get(CarrierEvent::Accepted) - self.reported;
        if silent_seconds > 0 && (now - since).as_secs() >= silent_seconds {
            return degraded(
                Evidence::Silence,
                format!(
                    "the carrier accepted {unreported} messages and has sent no receipt for {} s: \
                     ask it to send receipts to this account",
                    (now - since).as_secs()
                ),
            );
        }
        None
    }

    /// Considers the results of probes. Returns true if some succeeded and none failed.
    fn probed(&mut self, new: &CarrierCounts) -> bool {
        let Some(degraded) = &mut self.degraded else {
            return false;
        };
        let accepted = new.get(CarrierEvent::Accepted);
        let (refused, unanswered) = (new.not_accepted(), new.get(CarrierEvent::Unanswered));
        let (succeeded, failed) = match degraded.evidence {
            Evidence::Answers => (accepted, refused + unanswered),
            Evidence::Unanswered => (accepted + refused, unanswered),
            Evidence::Receipts | Evidence::Silence => {
                (new.get(CarrierEvent::Delivered), new.undelivered())
            }
        };
        degraded.probes = if failed > 0 { 0 } else { degraded.probes + succeeded };
        if degraded.probes >= PROBES {
            self.degraded = None;
            // The failures before must not count again.
            let last = self.history.back().copied();
            self.history.clear();
            self.history.extend(last);
        }
        succeeded > 0 && failed == 0
    }
}
