//! Admission: which requests may send, and how a send is accepted.

pub(crate) mod code;
pub(crate) mod idempotency;
pub(crate) mod rates;

use std::net::IpAddr;

use domain::admission::{EarlierRequest, SendAttempt, admit};
use domain::ids::Shard;
use domain::reason::Reason;
use domain::schedule::Due;
use domain::verify::SECRET_BYTES;
use domain::{
    ApiKey, ApplicationId, EventStream, Guard, KeyKind, Leak, MessageText, Money, Number,
    Reference, RequestId, Schedule, SendLimits, Timestamp, Transid, opt_out,
};

use serde::{Deserialize, Serialize};

use crate::admission::code::{PreparedCode, SentCode};
use crate::admission::idempotency::{IdempotencyKey, digest_of_send, kept_since};
use crate::admission::rates::RateState;
use crate::money::funds::Funds;
use crate::money::test_money::test_money;
use crate::transactions::work;
use crate::wakeups::Wakeup;
use crate::{Messages, zones};
use store::applications::{self, CodeSettings, KeyRow};
use store::error::{Error, Result as VerbResult};
use store::idempotency::{self as kept_answers, KeptKey};
use store::{messages, test_clocks};

/// The application that a key gives access to, and the kind of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyAccess {
    pub application_id: ApplicationId,
    pub reference: Reference,
    /// A test key sees only test messages and the test balance. A live key sees only live messages
    /// and the live balance.
    pub kind: KeyKind,
}

impl KeyAccess {
    /// Returns the stream whose events the key sees. Opt-outs are listed in the same way.
    pub(crate) const fn stream(&self) -> EventStream {
        let test = matches!(self.kind, KeyKind::Test);
        EventStream { application_id: self.application_id, test }
    }
}

/// The access of a key that may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendAccess {
    pub access: KeyAccess,
    /// True if a request with this idempotency key was accepted before. If the client repeats that
    /// request, it gets the same answer again, whatever the application's status is now. Any other
    /// request with the key is refused.
    pub known: bool,
}

/// Where a request came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The client's address.
    pub address: Option<IpAddr>,
    /// How the request shows that its key has leaked.
    pub leak: Option<Leak>,
}

impl Origin {
    /// Returns why an application's limits don't allow the request to use a key. A leaked test key
    /// isn't refused, because it can do no harm.
    pub(crate) fn refused(&self, limits: &SendLimits, kind: KeyKind) -> Option<Reason> {
        if !limits.admits_address(self.address) {
            return Some(Reason::AddressNotAllowed);
        }
        let is_blocked = self.leak.is_some() && limits.leaked_key == Guard::Block;
        (is_blocked && kind == KeyKind::Live).then_some(Reason::LeakedKey)
    }
}

/// The key that a request presents, and where the request came from.
#[derive(Clone, Copy, Debug)]
pub struct Presented<'a> {
    /// `None` if the request has no key.
    pub key: Option<&'a str>,
    pub origin: Origin,
}

/// A key whose request has no known address. Limits on addresses refuse it.
impl<'a> From<Option<&'a str>> for Presented<'a> {
    fn from(key: Option<&'a str>) -> Self {
        Self { key, origin: Origin::default() }
    }
}

#[derive(Clone, Debug)]
pub struct SendRequest {
    pub key: ApiKey,
    pub number: Number,
    pub message: MessageText,
    pub requestid: Option<RequestId>,
    /// If the time is too far away, the send is refused with [`Reason::InvalidParameter`], which no
    /// other fault of a send causes. A repeated request isn't refused, because its time may have
    /// passed in the meantime.
    pub schedule: Schedule,
    /// A second request with the same idempotency key gets the first one's answer and isn't
    /// charged.
    pub idempotency: Option<IdempotencyKey>,
    /// If true, the request is only checked. Nothing is stored, charged or sent, and no idempotency
    /// key is read or stored.
    pub dry_run: bool,
    pub origin: Origin,
}

/// Returns when a message that an application's key sends `now` is due. Returns `None` if the
/// requested time is too far away.
///
/// Messages of sends and uploads wait for the end of the application's quiet hours. Replies to
/// STOP, START and HELP don't come here, and don't wait. Only the time at which a message is first
/// due counts. If it is due before the quiet hours and is delayed, for example by its carrier or in
/// a paused upload, it doesn't wait for their end.
pub(crate) fn due(schedule: Schedule, limits: &SendLimits, now: Timestamp) -> Option<Due> {
    let zone = limits.zone.as_deref();
    schedule.due(now, |at| zones::quiet_end(zone, limits.quiet_hours?, at))
}

/// A send, with everything about it that can be computed without the database.
pub(crate) struct PreparedSend {
    pub(crate) request: SendRequest,
    /// The application with the reference of the request's key, if it was already looked up.
    pub(crate) application: Option<ApplicationId>,
    /// The hash of the request's key.
    pub(crate) key_hash: String,
    /// The recipient's number as a carrier gets it.
    pub(crate) recipient: String,
    /// The hash under which an opt-out of the recipient is stored after the number was erased.
    pub(crate) erased: String,
    pub(crate) pages: usize,
    pub(crate) segments: usize,
    /// The message with replaced characters. `None` if it is sent unchanged, even if the
    /// application has characters replaced.
    pub(crate) replaced: Option<MessageText>,
    /// The digest of the request's content. `None` without an idempotency key.
    pub(crate) digest: Option<String>,
    /// How far the test key's clock is ahead, in milliseconds. 0 for a live key.
    pub(crate) clock_ms: i64,
    /// The code in the message. The code is masked in the request's message.
    pub(crate) code: Option<PreparedCode>,
}

impl PreparedSend {
    /// Adds a one-time code to the send. Pages and segments are those of the text with the code.
    /// Such a text comes from us, so its characters aren't replaced.
    pub(crate) fn with_code(mut self, code: PreparedCode) -> Self {
        self.pages = code.text.pages();
        self.segments = code.text.segments();
        self.digest = self.digest.map(|_| code.digest.clone());
        self.code = Some(code);
        self.replaced = None;
        self
    }

    /// Returns the text that an application with these limits sends, with its pages and segments.
    pub(crate) fn text(&self, limits: &SendLimits) -> (&MessageText, usize, usize) {
        match &self.replaced {
            Some(text) if limits.replace_characters => (text, text.pages(), text.segments()),
            _ => (&self.request.message, self.pages, self.segments),
        }
    }

    pub(crate) fn new(
        request: SendRequest,
        application: Option<ApplicationId>,
        country_code: &str,
        erased_key: &[u8; SECRET_BYTES],
        clock_ms: i64,
    ) -> Self {
        let digest = request.idempotency.is_some().then(|| {
            let requestid = request.requestid.as_ref();
            digest_of_send(&request.number, &request.message, requestid, request.schedule)
        });
        let recipient = request.number.for_carrier(country_code);
        Self {
            key_hash: request.key.hash(),
            erased: opt_out::erased(erased_key, &recipient),
            recipient,
            pages: request.message.pages(),
            segments: request.message.segments(),
            replaced: request.message.replaced(),
            digest,
            application,
            clock_ms,
            request,
            code: None,
        }
    }

    pub(crate) fn is_test(&self) -> bool {
        self.request.key.kind() == KeyKind::Test
    }

    /// True if the send's key belongs to this application's row.
    pub(crate) fn opens(&self, row: &KeyRow) -> bool {
        row.holds_hash(self.request.key.kind(), &self.key_hash)
    }
}

/// An accepted message. It is durable, charged once, and on its way to a carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// `None` for a dry run.
    pub transid: Option<Transid>,
    pub pages: usize,
    pub cost: Money,
    /// The balance right after the message's charge.
    pub balance: Money,
    /// When the message is to be sent. `None` if it is due at once.
    pub send_at: Option<Timestamp>,
    /// The verification whose code the message contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<SentCode>,
    /// True if the message was already accepted and answered under the same idempotency key.
    #[serde(skip)]
    pub replayed: bool,
}

/// Why a message wasn't accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// Nothing was stored or charged.
    Refused(Reason),
    /// The outcome of the commit is unknown. The caller must close the connection without an
    /// answer.
    Lost,
}

impl Messages<'_> {
    /// Returns the read access of a key, even while the application is Pending or Suspended.
    /// Refuses a key only with code 504 or 505, or because its limits don't allow the request's
    /// origin.
    pub async fn authorize(
        &self,
        presented: impl Into<Presented<'_>>,
    ) -> Result<KeyAccess, Reason> {
        let (.., access) = self.opened(presented.into()).await?;
        Ok(access)
    }

    /// Counts a request that isn't a send or doesn't become one. Sends are counted when they are
    /// admitted.
    ///
    /// # Errors
    /// `RateLimited` if the key has used up its requests for this second.
    pub async fn take_request(&self, access: &KeyAccess) -> Result<(), Reason> {
        match self.take_one((access.reference, access.kind)).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Reason::RateLimited),
            Err(error) => {
                tracing::error!(detail = ?error, "requests can't be counted");
                Err(error.reason())
            }
        }
    }

    /// Checks whether a key may send, before the request's body is read. The transaction that
    /// charges the send checks it again.
    pub async fn authorize_send(
        &self,
        presented: impl Into<Presented<'_>>,
        idempotency: Option<&IdempotencyKey>,
    ) -> Result<SendAccess, Reason> {
        let (row, _, access) = self.opened(presented.into()).await?;
        self.check_admission(&row, access, idempotency).await
    }

    /// Checks whether an application may send with the key of the request. Doesn't check yet
    /// whether the request equals the earlier one with the same idempotency key.
    pub(crate) async fn check_admission(
        &self,
        row: &KeyRow,
        access: KeyAccess,
        idempotency: Option<&IdempotencyKey>,
    ) -> Result<SendAccess, Reason> {
        let known = match idempotency {
            Some(key) => self.is_kept(&access, key).await.map_err(|error| {
                tracing::error!(detail = ?error, "an idempotency key can't be looked up");
                error.reason()
            })?,
            None => false,
        };
        admit(&SendAttempt {
            application: Some(row.sending()),
            key: access.kind,
            // Checked when the key was looked up.
            refused_origin: None,
            earlier: if known { EarlierRequest::Same } else { EarlierRequest::None },
            reserved_outcome: None,
            is_opted_out: false,
            limited: None,
        })?;
        Ok(SendAccess { access, known })
    }

    /// Returns the read access of a key, with the application's row and the parsed key.
    pub(crate) async fn opened(
        &self,
        presented: Presented<'_>,
    ) -> Result<(KeyRow, ApiKey, KeyAccess), Reason> {
        let (row, _, key, access) = self.opened_with_codes(presented).await?;
        Ok((row, key, access))
    }

    /// Like [`Messages::opened`]. Also returns the application's settings for codes.
    pub(crate) async fn opened_with_codes(
        &self,
        presented: Presented<'_>,
    ) -> Result<(KeyRow, CodeSettings, ApiKey, KeyAccess), Reason> {
        let key =
            presented.key.and_then(|text| ApiKey::parse(text).ok()).ok_or(Reason::ApiInvalid)?;
        let found = self.key_and_code_settings(key.reference()).await.map_err(|error| {
            tracing::error!(detail = ?error, "a key can't be looked up");
            error.reason()
        })?;
        let found = found.filter(|(row, _)| row.holds(&key));
        let (row, settings) = found.ok_or(Reason::ApiInvalid)?;
        row.sending().check_category()?;
        presented.origin.refused(row.limits(), key.kind()).map_or(Ok(()), Err)?;
        let access =
            KeyAccess { application_id: row.id, reference: key.reference(), kind: key.kind() };
        Ok((row, settings, key, access))
    }

    async fn is_kept(&self, access: &KeyAccess, key: &IdempotencyKey) -> VerbResult<bool> {
        let keys = [KeptKey {
            application_id: access.application_id,
            test: access.kind == KeyKind::Test,
            key: key.as_str().to_owned(),
        }];
        let mut conn = self.read_of(access.reference).await?;
        let kept = kept_answers::find(&mut conn, &keys, kept_since(self.now())).await?;
        Ok(!kept.is_empty())
    }

    /// Returns how many requests a key may still make this second. `None` if requests aren't
    /// limited.
    pub fn rate_state(&self, key: &ApiKey) -> Option<RateState> {
        self.inner.rates.state(key, self.now())
    }

    pub(crate) async fn key_row(&self, reference: Reference) -> Result<Option<KeyRow>, Error> {
        Ok(self.key_and_code_settings(reference).await?.map(|(row, _)| row))
    }

    async fn key_and_code_settings(
        &self,
        reference: Reference,
    ) -> Result<Option<(KeyRow, CodeSettings)>, Error> {
        let Some(shard) = self.find_shard(reference).await? else {
            return Ok(None);
        };
        let mut conn = self.store().read_at(shard).await?;
        applications::keys_and_code_settings(&mut conn, reference).await
    }

    /// Returns the balance that the key can spend.
    ///
    /// # Errors
    /// `Refused` if there is no such application.
    pub async fn balance(&self, access: &KeyAccess) -> Result<Money, Error> {
        let mut conn = self.read_of(access.reference).await?;
        let found = applications::balances(&mut conn, access.application_id).await?;
        let found = found.ok_or(store::error::Refusal::NoSuchApplication)?;
        Ok(match access.kind {
            KeyKind::Live => found.balance,
            KeyKind::Test => test_money(found.test_balance, found.test_day, self.now()),
        })
    }

    /// Returns how many messages a test key may still send today (UTC). `None` if the number isn't
    /// limited, because the account has had a deposit.
    pub async fn test_messages_left(&self, key: &ApiKey) -> VerbResult<Option<i64>> {
        let row = self.key_row(key.reference()).await?;
        let funds = row.map(|row| self.funds(row, self.now()));
        Ok(funds.and_then(|funds| funds.messages_left(key.kind())))
    }

    /// Returns an application's funds, against which requests are admitted.
    pub(crate) fn funds(&self, row: KeyRow, now: Timestamp) -> Funds {
        Funds::new(row, now, self.limits().unpaid_test_messages)
    }

    /// Accepts a message. Stores, charges and queues it in one transaction, and returns after the
    /// commit. Dropping the future doesn't undo that, because the commit group owns the work.
    pub async fn send(&self, request: SendRequest) -> Result<Sent, SendError> {
        let address = match self.address_to_send(request.key.reference()).await {
            Ok(address) => address,
            Err(error) => {
                tracing::error!(detail = ?error, "an application can't be looked up");
                return Err(SendError::Refused(error.reason()));
            }
        };
        let shard = address.map_or(Shard::FIRST, |address| address.shard);
        // Prepared here, in parallel with other senders, because a shard's commit groups run on one
        // thread.
        let country_code = &self.inner.router.country_code;
        let application = address.map(|address| address.application_id);
        let of = request.key.reference();
        // Schedules and quiet hours follow the test key's clock.
        let is_test = request.key.kind() == KeyKind::Test;
        let clock_ms = if is_test { self.clock_ms(shard, of).await } else { Ok(0) };
        let clock_ms = clock_ms.map_err(|error| SendError::Refused(error.reason()))?;
        let key = self.accounts().erased_key().await;
        let key = key.map_err(|error| SendError::Refused(error.reason()))?;
        let prepared = PreparedSend::new(request, application, country_code, &key, clock_ms);
        let sent = self.inner.group_commit.inbox(shard).send(prepared).await?;
        if is_test
            && sent.send_at.is_some()
            && !sent.replayed
            && let Some(id) = sent.transid
            && let Err(error) = self.correct_schedule(shard, of, id, clock_ms).await
        {
            tracing::error!(detail = ?error, "a test message may be sent late, because its clock \
                was moved meanwhile");
        }
        Ok(sent)
    }

    /// Returns how far the clock of an application's test key is ahead.
    pub(crate) async fn clock_ms(&self, shard: Shard, of: Reference) -> Result<i64, Error> {
        let mut conn = self.store().read_at(shard).await?;
        Ok(test_clocks::of_reference(&mut conn, of).await?.offset_ms())
    }

    /// Corrects the time of a scheduled test message if the clock was moved while the message was
    /// accepted. It then counts as accepted after the move.
    async fn correct_schedule(
        &self,
        shard: Shard,
        of: Reference,
        id: Transid,
        clock_ms: i64,
    ) -> Result<(), Error> {
        if self.clock_ms(shard, of).await? == clock_ms {
            return Ok(());
        }
        self.in_transaction_of(
            of,
            work!(|tx, now| {
                let clock = test_clocks::of_reference(tx, of).await?;
                let Some(found) = messages::locate(tx, id).await? else { return Ok(()) };
                let message = (found.application_id, id);
                test_clocks::correct_message(tx, message, clock.offset_ms(), now).await
            }),
        )
        .await?;
        self.inner.wake(Wakeup::Queued);
        Ok(())
    }
}
