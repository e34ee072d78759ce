//! SMPP 3.4: turns messages into submits, and answers and deliveries into reports.

mod answers;
mod inbound;
mod pending;
mod receipts;
mod refusals;
mod submits;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ::smpp::trace::TracedPdu;
use ::smpp::{
    Backup, ClientCertificate, Connection, Event, Events, Fault, LastError, Outcome, Reaction,
    SharedPace, Submit, receipt,
};
use async_trait::async_trait;
use domain::Transid;
use domain::records::ConnectionState;
use parking_lot::Mutex;
use service::{Claimed, Clock, Lease, SubmitOutcome, Submitted};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::pace::Paces;
use super::refused::Refused;
use super::{CarrierConnection, CarrierReport, ConnectionStatus, is_due, last_start, with_both};
use crate::config::carriers::{BindMode, SmppSettings, SubmitAction};
use pending::Pending;
use refusals::EqualRefusals;
pub use refusals::status_words;

/// The maximum length of a password in SMPP 3.4 (5.2.2).
const PASSWORD_MAX: usize = 8;
/// How long a message may wait to be written, unless its lease allows less time. A message that
/// waits longer goes back to the queue, and may take another route.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);
/// How often the connection checks the submits that wait for a slot in the window.
const SWEEP: Duration = Duration::from_millis(200);
/// The shortest time between two log lines about throttled submits.
const THROTTLED_LOG_INTERVAL: Duration = Duration::from_mins(1);
/// The shortest time between two log lines about answers without a message ID. A carrier that omits
/// IDs usually omits them from every answer.
const NO_ID_LOG_INTERVAL: Duration = Duration::from_hours(1);

/// A connection to an SMSC.
pub struct SmppConnection {
    settings: SmppSettings,
    clock: Clock,
    answer_timeout: Duration,
    paces: Paces,
    connection: Connection,
    /// Read by one task at a time.
    events: tokio::sync::Mutex<Events>,
    inner: Mutex<Inner>,
    added: Notify,
}

#[derive(Default)]
struct Inner {
    pending: Pending,
    /// Submits of claimed messages that have no slot in the window yet.
    waiting: VecDeque<Submit>,
    refused: Refused,
    /// The last refusal of any kind.
    fault: Option<LastError>,
    /// Set while the carrier accepts submits without a message ID.
    without_id: Option<LastError>,
    throttled_logged_at: Option<Instant>,
    no_id_logged_at: Option<Instant>,
    /// Why the carrier refuses every submit.
    held: Option<String>,
    equal: EqualRefusals,
    /// Set when the carrier has refused a validity period: the highest tag of the submits that have
    /// one.
    last_with_validity: Option<u64>,
}

impl Inner {
    /// Returns the outcome of a submit that the carrier refused. If the carrier refused its
    /// validity period, the message is submitted again without one. Later messages get none,
    /// either.
    fn refused(&mut self, tag: u64, status: u32, settings: &SmppSettings) -> SubmitOutcome {
        let actions = &settings.submit_status;
        let sender = self.pending.sender(tag).unwrap_or_default();
        let is_of_all = self.equal.refused(status, sender, actions);
        let action = if is_of_all { SubmitAction::Hold } else { actions.action(status) };
        let refusals::Refusal { outcome, fault } =
            if is_of_all { refusals::of_all(status) } else { refusals::read(status, action) };
        match action {
            SubmitAction::Hold => self.hold(&fault),
            SubmitAction::Throttle
                if is_due(&mut self.throttled_logged_at, THROTTLED_LOG_INTERVAL) =>
            {
                let (code, error) = (fault.kind.words().code, &fault);
                tracing::warn!(fault = code, %error, "the carrier throttles submits");
            }
            _ => {}
        }
        self.fault = Some(LastError { fault, at: Instant::now() });
        if status != ::smpp::status_code::INVALID_VALIDITY || !settings.validity_period {
            return outcome;
        }
        if self.last_with_validity.is_none() {
            tracing::warn!(
                "the carrier refuses the validity period; messages are submitted without one from \
                 now on. Set validity_period = false in its settings"
            );
        }
        let last = *self.last_with_validity.get_or_insert(self.pending.last_tag());
        if tag <= last { SubmitOutcome::NotSent } else { outcome }
    }

    /// Records that the carrier refuses every submit.
    fn hold(&mut self, fault: &Fault) {
        let error = fault.to_string();
        if self.held.is_none() {
            let fault = fault.kind.words().code;
            tracing::error!(fault, error, "the carrier refuses all messages");
        }
        self.held = Some(error);
    }

    /// Records that the carrier accepted a submit, with a message ID or without one.
    fn accepted(&mut self, has_id: bool) {
        self.equal.accepted();
        let began = self.without_id.take().map_or_else(Instant::now, |error| error.at);
        self.without_id =
            (!has_id).then(|| LastError { fault: Fault::of_answer_without_id(), at: began });
        if let Some(LastError { fault, .. }) = &self.without_id
            && is_due(&mut self.no_id_logged_at, NO_ID_LOG_INTERVAL)
        {
            let (code, error) = (fault.kind.words().code, fault);
            tracing::warn!(fault = code, %error, "the carrier accepted a message without an ID");
        }
        if self.held.take().is_some() {
            tracing::warn!("the carrier accepts messages again");
        }
    }
}

impl SmppConnection {
    /// Opens the connection, which binds and reconnects on its own. A carrier that answers nothing
    /// for `silent` gets no more messages until it answers one. `lease` is how long a claim lasts.
    /// `seed` determines the jitter of the backoff between binds.
    pub fn open(
        settings: SmppSettings,
        silent: Option<Duration>,
        paces: Paces,
        clock: Clock,
        lease: Duration,
        seed: u64,
    ) -> Self {
        if settings.password.expose().len() > PASSWORD_MAX {
            tracing::warn!(
                "the password is longer than the {PASSWORD_MAX} characters that SMPP allows; if \
                 the carrier refuses the bind, ask whether it checks only the first ones"
            );
        }
        // The other half of the lease is for the write and for storing the answer.
        let answer_timeout = settings.answer_timeout.min(lease / 2);
        let inner = Inner::default();
        let reaction = inner.equal.reaction(settings.submit_status.clone());
        let timers = ::smpp::Timers {
            answer: answer_timeout,
            silent,
            enquire_link: settings.enquire_link,
            ..::smpp::Timers::default()
        };
        let session = session_settings(&settings, paces.all.clone(), timers, Arc::new(reaction));
        let (connection, events) = Connection::open(session, seed);
        Self {
            settings,
            clock,
            answer_timeout,
            paces,
            connection,
            events: tokio::sync::Mutex::new(events),
            inner: Mutex::new(inner),
            added: Notify::new(),
        }
    }

    /// Passes waiting submits to the connection while the window has free slots.
    fn feed(&self, inner: &mut Inner) {
        let places = self.connection.free().min(inner.waiting.len());
        if places > 0 {
            self.connection.submit(inner.waiting.drain(..places).collect());
        }
    }

    fn read(&self, events: Vec<Event>) -> CarrierReport {
        let mut report = CarrierReport::default();
        let mut inner = self.inner.lock();
        for event in events {
            match event {
                Event::Answer { tag, outcome } => {
                    let written = answers::written(&outcome);
                    let outcome = self.outcome(&mut inner, tag, outcome);
                    if let (Some(written), Some(recipient)) =
                        (written, inner.pending.recipient(tag))
                    {
                        report.raw_receipts.extend(answers::raw(written, &outcome, recipient));
                    }
                    match &outcome {
                        SubmitOutcome::Refused { error } | SubmitOutcome::Rejected { error } => {
                            inner.refused.count(error);
                        }
                        SubmitOutcome::Held { error } | SubmitOutcome::Temporary { error } => {
                            inner.refused.count_deferred(error);
                        }
                        SubmitOutcome::Throttled { error } => inner.refused.count_throttled(error),
                        _ => {}
                    }
                    inner.pending.answer(tag, outcome, &mut report.submitted);
                }
                Event::Deliver(delivery) => {
                    if let Some(receipt) = receipt::parse(&delivery) {
                        report.deliveries.push(delivery.handle);
                        let read = receipts::read(&delivery, &receipt, &self.settings);
                        report.raw_receipts.push(read.raw);
                        report.carrier_receipts.extend(read.read);
                    } else {
                        let alphabet = self.settings.default_alphabet;
                        report.inbound.deliveries.push(delivery.handle);
                        report.inbound.messages.push(inbound::read(delivery, alphabet));
                    }
                }
            }
        }
        self.sweep(&mut inner, &mut report.submitted);
        report.early = inner.pending.take_early();
        self.feed(&mut inner);
        report
    }

    /// Reports the waiting submits whose deadline has passed as not sent. Reports all of them as
    /// not sent while the connection is down, or pauses because the carrier refuses everything or
    /// answers nothing.
    fn sweep(&self, inner: &mut Inner, results: &mut Vec<Submitted>) {
        let now = Instant::now();
        let status = self.connection.status();
        let paused = status.held_until.is_some() || status.silent;
        let down = status.state != ::smpp::State::Bound || paused;
        let over = |submit: &Submit| down || submit.not_after <= now;
        while inner.waiting.front().is_some_and(over) {
            if let Some(submit) = inner.waiting.pop_front() {
                let outcome = SubmitOutcome::NotSent;
                inner.pending.answer(submit.tag, outcome, results);
            }
        }
    }

    fn outcome(&self, inner: &mut Inner, tag: u64, outcome: Outcome) -> SubmitOutcome {
        match outcome {
            Outcome::Accepted { message_id } => {
                let message_id = message_id.filter(|id| !id.is_empty());
                inner.accepted(message_id.is_some());
                SubmitOutcome::Accepted {
                    carrier_message_id: message_id
                        .map(|id| self.settings.message_id.of_answer(&id)),
                }
            }
            Outcome::Refused { status, .. } | Outcome::Unsendable { status } => {
                inner.refused(tag, status, &self.settings)
            }
            Outcome::NotSent => SubmitOutcome::NotSent,
            Outcome::Unknown { cause } => {
                SubmitOutcome::Unknown { error: refusals::lost(cause).to_owned() }
            }
        }
    }
}

/// Connects to each address of a carrier, with TLS if it is set, and closes the connection without
/// a bind. Returns each address with the result.
pub async fn probe(settings: &SmppSettings) -> Vec<(String, Result<(), Fault>)> {
    let reaction = Arc::new(EqualRefusals::default().reaction(settings.submit_status.clone()));
    let session = session_settings(settings, None, ::smpp::Timers::default(), reaction);
    let mut probed = vec![(session.address.clone(), ::smpp::probe(&session, None).await)];
    if let Some(backup) = &session.backup {
        probed.push((backup.address.clone(), ::smpp::probe(&session, Some(backup)).await));
    }
    probed
}

#[async_trait]
impl CarrierConnection for SmppConnection {
    fn free(&self) -> usize {
        let waiting = self.inner.lock().waiting.len();
        self.connection.free().saturating_sub(waiting)
    }

    async fn until_free(&self) {
        loop {
            self.connection.until_free().await;
            let mut inner = self.inner.lock();
            self.feed(&mut inner);
            if inner.waiting.is_empty() {
                return;
            }
        }
    }

    fn submit(&self, lease: Lease, messages: Vec<Claimed>) {
        let last_start = last_start(lease, self.answer_timeout);
        let not_after = last_start.min(Instant::now() + WRITE_TIMEOUT);
        let now = self.clock.now();
        let mut inner = self.inner.lock();
        for message in messages {
            let with_validity = self.settings.validity_period && inner.last_with_validity.is_none();
            let parts = submits::parts(&message, &self.settings, with_validity, now);
            if let Some(wait) = self.paces.wait(&message.sender, parts.len()) {
                inner.pending.put_back(&message, lease, parts.len(), wait);
                continue;
            }
            inner.equal.submit(&message.sender);
            let tags = inner.pending.add(&message, lease, &parts);
            for (part, tag) in parts.into_iter().zip(tags) {
                if let Some(tag) = tag {
                    inner.waiting.push_back(Submit { tag, not_after, ..part });
                }
            }
        }
        self.feed(&mut inner);
        drop(inner);
        self.added.notify_one();
    }

    async fn report(&self) -> Option<CarrierReport> {
        let mut events = self.events.lock().await;
        loop {
            let (submitted, waits) = {
                let mut inner = self.inner.lock();
                let mut results = inner.pending.take_done();
                self.sweep(&mut inner, &mut results);
                (results, !inner.waiting.is_empty())
            };
            if !submitted.is_empty() {
                return Some(CarrierReport { submitted, ..CarrierReport::default() });
            }
            tokio::select! {
                // The events end after the connection closes. By then, no submit is waiting.
                events = events.next() => return Some(self.read(events?)),
                () = self.added.notified() => {}
                () = self.connection.until_free(), if waits => {
                    let mut inner = self.inner.lock();
                    self.feed(&mut inner);
                }
                () = tokio::time::sleep(SWEEP), if waits => {}
            }
        }
    }

    fn stored(&self, report: CarrierReport, _taken: &[Transid]) {
        self.acknowledge(report.deliveries);
    }

    fn acknowledge(&self, deliveries: Vec<::smpp::DeliveryHandle>) {
        for delivery in deliveries {
            self.connection.acknowledge(delivery, ::smpp::status_code::OK);
        }
    }

    fn state(&self) -> ConnectionStatus {
        let status = self.connection.status();
        let inner = self.inner.lock();
        let (refused, held) = (inner.refused.clone(), inner.held.clone());
        let last_error = last_error(&status, inner.fault.as_ref()).cloned();
        let last_error = last_error.map(|error| (error.fault.to_string(), Some(error.at)));
        let without_id = inner.without_id.as_ref();
        let without_id = without_id.map(|error| (error.fault.to_string(), Some(error.at)));
        drop(inner);
        let (last_error, last_error_at) = with_both(last_error, without_id).unzip();
        // While the carrier refuses everything, each message is a probe, too. `held` counts besides
        // the session's state, because the session learns of it only from the next refusal.
        let probing = status.probing || status.held || held.is_some();
        ConnectionStatus {
            state: match status.state {
                ::smpp::State::Connecting => ConnectionState::Connecting,
                ::smpp::State::Bound if probing => ConnectionState::Probing,
                ::smpp::State::Bound => ConnectionState::Bound,
                ::smpp::State::Waiting => ConnectionState::Waiting,
                ::smpp::State::Closed => ConnectionState::Closed,
            },
            since: status.since,
            in_flight: status.in_flight,
            window: status.window,
            unanswered_since: status.unanswered_since,
            answered: status.answered,
            throttled: status.throttled,
            throttled_until: status.throttled_until,
            takes_probe: probing && self.free() > 0,
            lost: status.lost,
            refused,
            last_error,
            last_error_at: last_error_at.flatten(),
            held,
        }
    }

    fn trace(&self, source: usize, to: &mpsc::Sender<TracedPdu>) -> bool {
        self.connection.trace(source, to.clone());
        true
    }

    async fn close(&self) {
        self.connection.close().await;
    }
}

/// Returns the last refusal of a submit if the connection is bound and the last link ended earlier.
/// Otherwise, returns why the last link ended.
fn last_error<'a>(
    status: &'a ::smpp::Status,
    refusal: Option<&'a LastError>,
) -> Option<&'a LastError> {
    let bound = status.state == ::smpp::State::Bound;
    let is_newer = |refusal: &&LastError| {
        status.last_error.as_ref().is_none_or(|ended| refusal.at >= ended.at)
    };
    let refusal = refusal.filter(|_| bound).filter(is_newer);
    refusal.or(status.last_error.as_ref())
}

fn session_settings(
    settings: &SmppSettings,
    shared_pace: Option<Arc<SharedPace>>,
    timers: ::smpp::Timers,
    reaction: Arc<dyn Fn(u32) -> Reaction + Send + Sync>,
) -> ::smpp::Settings {
    ::smpp::Settings {
        address: settings.address.to_string(),
        backup: settings.backup_address.as_ref().map(|address| Backup {
            address: address.to_string(),
            server_name: address.host().to_owned(),
        }),
        tls: settings.tls.as_ref().map(|tls| ::smpp::Tls {
            ca_file: tls.ca_file.clone(),
            server_name: settings.address.host().to_owned(),
            client: tls
                .client
                .clone()
                .map(|files| ClientCertificate { cert_file: files.cert, key_file: files.key }),
        }),
        system_id: settings.system_id.clone(),
        password: settings.password.expose().to_owned(),
        system_type: settings.system_type.clone(),
        address_range: settings.address_range.clone(),
        bind: match settings.bind {
            BindMode::Transceiver => ::smpp::BindMode::Transceiver,
            BindMode::Transmitter => ::smpp::BindMode::Transmitter,
            BindMode::Receiver => ::smpp::BindMode::Receiver,
            BindMode::TransmitterAndReceiver => ::smpp::BindMode::TransmitterAndReceiver,
        },
        window: if settings.bind == BindMode::Receiver { 0 } else { settings.window },
        rate: settings.rate,
        shared_pace,
        reaction,
        timers,
    }
}

#[cfg(test)]
mod tests;
