//! A connection to the HTTP API of a carrier. Each message is one request, and several requests run
//! at a time.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::records::ConnectionState;
use domain::support::ReceiptKind;
use domain::{Timestamp, Transid};
use parking_lot::Mutex;
use service::{Claimed, Clock, Lease, RawReceipt, SubmitOutcome, Submitted};
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::super::pace::{Paces, SenderPace};
use super::super::refused::Refused;
use super::super::{
    CarrierConnection, CarrierReport, ConnectionStatus, application, is_due, last_start, later,
    with_both,
};
use super::HttpCarrier;
use super::answer::{HttpOutcome, WrittenAnswer};
use super::fault::{HttpFault, HttpFaultKind};
use super::submit::HttpSubmit;
use crate::config::carriers::HttpSettings;
use crate::config_error::ConfigError;

/// The first pause after the carrier couldn't be reached, gave no clear answer, asked us to slow
/// down or refused the account. Each further pause is twice as long as the one before.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// A longer `Retry-After` counts as this long. Otherwise a carrier's mistake could stop submits for
/// a day. It must also be shorter than the two minutes after which operators get an alert about a
/// carrier that is down.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(1);
/// The shortest time between two log lines about answers without a message ID. A carrier that omits
/// IDs usually omits them from every answer.
const NO_ID_LOG_INTERVAL: Duration = Duration::from_hours(1);
/// How long a message may wait for the rate limit, at most a sixth of the lease. The request gets
/// at most two thirds of the lease, so both end before the lease.
const TURN: Duration = Duration::from_secs(10);

/// A carrier behind an HTTP API.
pub struct HttpConnection {
    shared: Arc<Shared>,
    clock: Clock,
}

struct Shared {
    carrier: HttpCarrier,
    connections: usize,
    each_sender: Option<Arc<SenderPace>>,
    /// How long a message may wait for the rate limit.
    turn: Duration,
    /// The time limit of a request.
    timeout: Duration,
    inner: Mutex<Inner>,
    reportable: Notify,
    freed: Notify,
}

struct Inner {
    in_flight: usize,
    answered: Vec<Submitted>,
    /// Answers that are kept for staff.
    raw: Vec<RawReceipt>,
    /// The length of the latest pause. `None` while the carrier works.
    pause: Option<Duration>,
    paused_until: Option<Instant>,
    /// Why the carrier refuses every message. `None` if it doesn't.
    held: Option<String>,
    since: Instant,
    closed: bool,
    answers: u64,
    throttled: u64,
    refused: Refused,
    /// The last fault, and the time when it was last seen.
    fault: Option<(HttpFault, Instant)>,
    /// Set while the carrier accepts messages without an ID that its receipts could match.
    without_id: Option<(HttpFault, Instant)>,
    no_id_logged_at: Option<Instant>,
}

impl HttpConnection {
    /// Creates the connection without connecting yet. `lease` is how long a claim lasts.
    pub fn new(
        mut settings: HttpSettings,
        clock: Clock,
        lease: Duration,
    ) -> Result<Self, ConfigError> {
        settings.timeout = settings.timeout.min(lease * 2 / 3);
        let timeout = settings.timeout;
        let (connections, sender_rate) = (settings.connections, settings.sender_rate);
        let shared = Shared {
            carrier: HttpCarrier::new(settings)?,
            connections,
            each_sender: SenderPace::of(sender_rate),
            turn: TURN.min(lease / 6),
            timeout,
            inner: Mutex::new(Inner {
                in_flight: 0,
                answered: Vec::new(),
                raw: Vec::new(),
                pause: None,
                paused_until: None,
                held: None,
                since: Instant::now(),
                closed: false,
                answers: 0,
                throttled: 0,
                refused: Refused::default(),
                fault: None,
                without_id: None,
                no_id_logged_at: None,
            }),
            reportable: Notify::new(),
            freed: Notify::new(),
        };
        Ok(Self { shared: Arc::new(shared), clock })
    }

    /// Returns the rate limits, which other processes share.
    pub fn paces(&self) -> Paces {
        Paces {
            all: Some(Arc::clone(&self.shared.carrier.pace)),
            each_sender: self.shared.each_sender.clone(),
        }
    }
}

impl Shared {
    /// Returns how many messages may be in flight. With more, the rate limit would let the last one
    /// wait longer than `turn`.
    fn window(&self) -> usize {
        let turns = self.carrier.pace.turns_within(self.turn);
        turns.map_or(self.connections, |turns| self.connections.min(turns.max(1)))
    }

    fn answer(
        &self,
        mut result: Submitted,
        number: &str,
        (outcome, written): (HttpOutcome, Option<WrittenAnswer>),
    ) {
        let mut inner = self.inner.lock();
        inner.in_flight -= 1;
        inner.answers += 1;
        inner.note(&outcome);
        // Without receipts, nothing needs an ID.
        let needs_id = self.carrier.settings.receipt.is_some();
        if let HttpOutcome::Accepted { message_id } = &outcome {
            inner.note_id(!needs_id || message_id.is_some());
        }
        let outcome = outcome_of(outcome);
        if let Some(WrittenAnswer { status, text }) = written {
            let answer = RawReceipt::of_answer(&outcome, result.id, number)
                .filter(|answer| needs_id || answer.kind != ReceiptKind::AcceptedWithoutId);
            let texts =
                |answer| RawReceipt { state: format!("HTTP {status}"), raw: text, ..answer };
            inner.raw.extend(answer.map(texts));
        }
        result.outcomes.push((1, outcome));
        inner.answered.push(result);
        drop(inner);
        self.reportable.notify_one();
        self.freed.notify_waiters();
    }

    /// Reports a message that isn't submitted now, so that it goes back into the queue.
    fn put_back(&self, result: Submitted) {
        self.inner.lock().answered.push(result);
        self.reportable.notify_one();
    }
}

impl Inner {
    fn free(&self, window: usize) -> usize {
        if self.closed || self.is_paused() {
            return 0;
        }
        // After a pause, one message at a time tests whether the carrier works again.
        let most = if self.pause.is_some() { 1 } else { window };
        most.saturating_sub(self.in_flight)
    }

    /// Records whether an accepted message has the ID that its receipt needs.
    fn note_id(&mut self, has_id: bool) {
        let fault = || HttpFault::new(HttpFaultKind::AcceptedWithoutId, "");
        let began = self.without_id.take().map_or_else(Instant::now, |(_, began)| began);
        self.without_id = (!has_id).then(|| (fault(), began));
        if let Some((fault, _)) = &self.without_id
            && is_due(&mut self.no_id_logged_at, NO_ID_LOG_INTERVAL)
        {
            let (code, error) = (fault.kind.words().code, fault);
            tracing::warn!(fault = code, %error, "the carrier accepted a message without an ID");
        }
    }

    fn saw(&mut self, fault: &HttpFault) {
        self.fault = Some((fault.clone(), Instant::now()));
    }

    /// Records a fault that pauses the connection. Logs it if it is the first one of an outage.
    fn begin_fault(&mut self, fault: &HttpFault) {
        if self.pause.is_none() {
            let (code, error) = (fault.kind.words().code, fault);
            let what = if fault.kind == HttpFaultKind::Throttled {
                "asks us to slow down"
            } else {
                "doesn't work"
            };
            tracing::warn!(fault = code, %error, "an HTTP carrier {what}");
        }
        self.saw(fault);
    }

    fn is_paused(&self) -> bool {
        self.paused_until.is_some_and(|until| Instant::now() < until)
    }

    /// Records that the carrier refuses every message.
    fn hold(&mut self, fault: &HttpFault) {
        if self.held.is_none() {
            let (code, error) = (fault.kind.words().code, fault);
            tracing::error!(fault = code, %error, "the carrier refuses all messages");
        }
        self.held = Some(fault.to_string());
    }

    /// Records an outcome. Begins a pause if the carrier can't be reached, gives no clear answer,
    /// asks us to slow down or refuses every message.
    fn note(&mut self, outcome: &HttpOutcome) {
        match outcome {
            HttpOutcome::Throttled { error, after } => {
                self.throttled += 1;
                self.refused.count_throttled("throttled");
                self.begin_fault(error);
                self.begin_pause(*after);
            }
            // The next messages may get no clear answer either, and then become unknown. So the
            // connection pauses even if the carrier was reached.
            HttpOutcome::NotSent { error } | HttpOutcome::Unknown { error } => {
                self.begin_fault(error);
                self.begin_pause(Duration::ZERO);
            }
            HttpOutcome::Held { reason, error } => {
                self.refused.count_deferred(reason);
                self.saw(error);
                self.hold(error);
                self.begin_pause(Duration::ZERO);
            }
            HttpOutcome::Retry { reason, error } => {
                self.refused.count_deferred(reason);
                self.saw(error);
            }
            // The request was never sent, so this says nothing about the carrier.
            HttpOutcome::TooLate => {}
            HttpOutcome::Refused { reason, error } => {
                self.refused.count(reason);
                self.saw(error);
                // A carrier that refuses every message may check a message before the account. Then
                // it refuses a bad message for another reason, which doesn't end the hold.
                if self.held.is_none() {
                    self.end_pause();
                }
            }
            HttpOutcome::Accepted { .. } => {
                if self.held.take().is_some() {
                    tracing::warn!("the carrier accepts messages again");
                }
                self.end_pause();
            }
        }
    }

    /// Begins a pause that lasts longer than the previous one and at least `at_least`.
    fn begin_pause(&mut self, at_least: Duration) {
        let now = Instant::now();
        // During a pause, further faults of messages that were in flight don't lengthen it. But if
        // such a message was accepted, it ended the pause, and this fault begins a new one.
        if !self.is_paused() || self.pause.is_none() {
            if self.pause.is_none() {
                self.since = now;
            }
            let pause = self.pause.map_or(PAUSE_FIRST, |pause| (pause * 2).min(PAUSE_MAX));
            self.pause = Some(pause);
            self.paused_until = Some(now + pause);
        }
        self.paused_until = self.paused_until.max(Some(now + at_least.min(RETRY_AFTER_MAX)));
    }

    fn end_pause(&mut self) {
        if self.pause.take().is_some() {
            self.since = Instant::now();
        }
    }
}

fn outcome_of(outcome: HttpOutcome) -> SubmitOutcome {
    match outcome {
        HttpOutcome::Accepted { message_id } => {
            SubmitOutcome::Accepted { carrier_message_id: message_id }
        }
        HttpOutcome::Refused { reason, .. } => SubmitOutcome::Refused { error: reason },
        HttpOutcome::Throttled { .. } => SubmitOutcome::Throttled { error: "throttled".to_owned() },
        HttpOutcome::Held { reason, .. } => SubmitOutcome::Held { error: reason },
        HttpOutcome::Retry { reason, .. } => SubmitOutcome::Temporary { error: reason },
        HttpOutcome::NotSent { .. } | HttpOutcome::TooLate => SubmitOutcome::NotSent,
        HttpOutcome::Unknown { error } => SubmitOutcome::Unknown { error: error.for_customers() },
    }
}

fn submit_of(message: &Claimed, now: Timestamp, not_after: Instant) -> HttpSubmit {
    let left_s = message.expires_at.ms_since(now) / 1000;
    HttpSubmit {
        not_after,
        transid: message.id.to_string(),
        application: application(message),
        number: message.address.clone(),
        sender: message.sender.clone(),
        message: message.message.as_str().to_owned(),
        is_secret: message.code.is_some(),
        validity_s: left_s.max(1).unsigned_abs(),
    }
}

#[async_trait]
impl CarrierConnection for HttpConnection {
    fn free(&self) -> usize {
        self.shared.inner.lock().free(self.shared.window())
    }

    async fn until_free(&self) {
        loop {
            let freed = self.shared.freed.notified();
            let paused_until = {
                let inner = self.shared.inner.lock();
                if inner.free(self.shared.window()) > 0 {
                    return;
                }
                inner.paused_until.filter(|_| inner.is_paused())
            };
            match paused_until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => freed.await,
            }
        }
    }

    fn submit(&self, lease: Lease, messages: Vec<Claimed>) {
        let now = self.clock.now();
        let not_after = last_start(lease, self.shared.timeout);
        for message in messages {
            let mut result = Submitted {
                id: message.id,
                application_id: message.application_id,
                lease,
                segments: 1,
                outcomes: Vec::new(),
            };
            if !message.submitted_segments.is_empty() {
                self.shared.put_back(result);
                continue;
            }
            let each_sender = self.shared.each_sender.as_ref();
            if let Some(wait) = each_sender.and_then(|pace| pace.wait(&message.sender, 1)) {
                result.outcomes.push((1, later(wait)));
                self.shared.put_back(result);
                continue;
            }
            self.shared.inner.lock().in_flight += 1;
            let shared = Arc::clone(&self.shared);
            let submit = submit_of(&message, now, not_after);
            // A task of its own reports the outcome of a sent request even if the caller ends.
            let submitting = async move {
                let answered = shared.carrier.submit(&submit).await;
                shared.answer(result, &submit.number, answered);
            };
            tokio::spawn(submitting.in_current_span());
        }
    }

    async fn report(&self) -> Option<CarrierReport> {
        loop {
            {
                let mut inner = self.shared.inner.lock();
                if !inner.answered.is_empty() {
                    return Some(CarrierReport {
                        submitted: std::mem::take(&mut inner.answered),
                        raw_receipts: std::mem::take(&mut inner.raw),
                        ..CarrierReport::default()
                    });
                }
                if inner.closed && inner.in_flight == 0 {
                    return None;
                }
            }
            self.shared.reportable.notified().await;
        }
    }

    fn stored(&self, _report: CarrierReport, _taken: &[Transid]) {}

    fn acknowledge(&self, _deliveries: Vec<::smpp::DeliveryHandle>) {}

    fn state(&self) -> ConnectionStatus {
        let inner = self.shared.inner.lock();
        let words = |fault: &Option<(HttpFault, Instant)>| {
            fault.as_ref().map(|(fault, at)| (fault.to_string(), Some(*at)))
        };
        let error = with_both(words(&inner.fault), words(&inner.without_id));
        let (last_error, last_error_at) = error.unzip();
        ConnectionStatus {
            state: if inner.closed {
                ConnectionState::Closed
            } else if inner.held.is_none() && inner.is_paused() {
                ConnectionState::Waiting
            } else if inner.pause.is_some() {
                ConnectionState::Probing
            } else {
                ConnectionState::Bound
            },
            since: inner.since,
            in_flight: inner.in_flight,
            window: self.shared.window(),
            unanswered_since: self.shared.carrier.unanswered_since(),
            answered: inner.answers,
            throttled: inner.throttled,
            throttled_until: None,
            takes_probe: inner.pause.is_some() && inner.free(self.shared.window()) > 0,
            lost: 0,
            refused: inner.refused.clone(),
            last_error,
            last_error_at: last_error_at.flatten(),
            held: inner.held.clone(),
        }
    }

    /// Accepts no more messages. Requests in flight continue until their timeout.
    async fn close(&self) {
        self.shared.inner.lock().closed = true;
        self.shared.reportable.notify_one();
    }
}
