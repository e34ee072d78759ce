//! One-time codes: starts verifications, sends their codes again, and checks what was typed.
//!
//! A code is derived from the verification's row and a secret of the server, so it is stored
//! nowhere. The stored text of its message is masked. The real text is made when a connection takes
//! the claimed message ([`crate::delivery`]).

pub(crate) mod checks;
mod settings;

use domain::ids::Shard;
use domain::verify::{
    COOL_DOWN_MS, Code, CodeText, Locale, MASK, ResendRefusal, SECRET_BYTES, WebOtpDomain, unmasked,
};
use domain::{
    ApiKey, EventStream, HomeCountry, Kind, MessageText, Number, Reason, Schedule, SenderName,
    Timestamp, VerifyId,
};

use crate::Messages;
use crate::admission::code::PreparedCode;
use crate::admission::idempotency::{Digest, IdempotencyKey};
use crate::admission::{
    KeyAccess, Origin, PreparedSend, Presented, SendAccess, SendError, SendRequest, Sent,
};
use store::error::Result;
use store::recipients::local_digits;
use store::verifications::{self, CodeRow};

pub use checks::Checked;
pub use store::applications::CodeSettings;
pub use store::verifications::{VerificationRecord, VerifyFigures};

/// The verification to start, or the one whose code to send again.
#[derive(Clone, Debug)]
pub enum StartOf {
    New {
        number: Number,
        /// `None` for the application's language.
        locale: Option<Locale>,
        /// One of [`domain::verify::CODE_DIGITS`].
        digits: usize,
        /// One of [`domain::verify::TTL_S`].
        ttl_s: i64,
        /// The name in the text. `None` for the sender name.
        name: Option<SenderName>,
    },
    Again(VerifyId),
}

/// A request to send a code.
#[derive(Clone, Debug)]
pub struct StartRequest {
    pub key: ApiKey,
    pub of: StartOf,
    pub idempotency: Option<IdempotencyKey>,
    pub origin: Origin,
}

/// An application's settings for codes, and the name that its texts have.
#[derive(Clone, Debug)]
pub struct CodeDefaults {
    pub settings: CodeSettings,
    name: String,
}

/// Why a code wasn't sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    Send(SendError),
    /// The number had a code too recently. It may have the next one at this time.
    TooEarly(Timestamp),
}

impl From<Reason> for StartError {
    fn from(reason: Reason) -> Self {
        Self::Send(SendError::Refused(reason))
    }
}

pub(crate) fn code_of(
    secret: &[u8; SECRET_BYTES],
    stream_is_test: bool,
    (id, nonce, digits): (VerifyId, i64, usize),
) -> Code {
    if stream_is_test {
        return Code::of_test(digits);
    }
    let nonce = [id.0.to_be_bytes(), nonce.to_be_bytes()].concat();
    Code::derive(secret, &nonce, digits)
}

impl Messages<'_> {
    /// Like [`Messages::authorize_send`], for a request that sends a code. Also returns the
    /// application's settings.
    pub async fn authorize_start(
        &self,
        presented: impl Into<Presented<'_>>,
        idempotency: Option<&IdempotencyKey>,
    ) -> std::result::Result<(SendAccess, CodeDefaults), Reason> {
        let (row, settings, _, access) = self.opened_with_codes(presented.into()).await?;
        let access = self.check_admission(&row, access, idempotency).await?;
        let name = row.sender_name.unwrap_or_else(|| self.inner.router.default_sender.clone());
        Ok((access, CodeDefaults { settings, name }))
    }

    /// Sends a code. The transaction that accepts the message also stores the verification, or that
    /// its code was sent again.
    ///
    /// # Errors
    /// Also `NotFound` if the application has no such verification. `VerifyEnded` if the
    /// verification allows no more attempts, or if its code was sent as often as allowed.
    pub async fn start_verification(
        &self,
        access: &KeyAccess,
        defaults: &CodeDefaults,
        request: StartRequest,
    ) -> std::result::Result<Sent, StartError> {
        let failed = |error: store::error::Error| {
            tracing::error!(detail = ?error, "a code can't be sent");
            StartError::from(error.reason())
        };
        let shard = self.shard_of(access.reference).await.map_err(failed)?;
        let now = self.now();
        let stream = access.stream();
        let (row, number, refused) = match &request.of {
            StartOf::New { number, .. } => {
                let row = self.new_code(stream, defaults, &request.of, number, now);
                (row, number.clone(), None)
            }
            StartOf::Again(id) => {
                let mut conn = self.store().read_at(shard).await.map_err(failed)?;
                let found = verifications::one(&mut conn, stream, *id).await.map_err(failed)?;
                let found = found.ok_or(Reason::NotFound)?;
                let refused = found.state.resend(now).err();
                let CodeRow { number, kind, .. } = &found.row;
                let number = match kind {
                    Kind::Local => local_digits(number, self.country_code()).unwrap_or(number),
                    Kind::International => number,
                };
                (found.row.clone(), Number::from_stored(number.to_owned(), *kind), refused)
            }
        };
        let too_early = match refused {
            Some(ResendRefusal::TooEarly(at)) => Some(at),
            _ => None,
        };
        let refused = refused.map(|refusal| match refusal {
            ResendRefusal::TooEarly(_) => Reason::RateLimited,
            ResendRefusal::Ended => Reason::VerifyEnded,
        });
        let id = row.id;
        let is_new = row.resends.is_none();
        let recipient = row.number.clone();
        let secret = self.accounts().code_secret().await.map_err(failed)?;
        let digest = digest_of(&request.of);
        let domain = defaults.settings.domain.as_ref();
        let (masked, code) = prepared(&secret, row, domain, digest, refused);
        let request = SendRequest {
            key: request.key,
            number,
            message: masked,
            requestid: None,
            schedule: Schedule::default(),
            idempotency: request.idempotency,
            dry_run: false,
            origin: request.origin,
        };
        let country_code = &self.inner.router.country_code;
        let application = Some(access.application_id);
        let clock_ms = self.code_clock_ms(shard, access).await.map_err(failed)?;
        let key = self.accounts().erased_key().await.map_err(failed)?;
        let prepared = PreparedSend::new(request, application, country_code, &key, clock_ms);
        let sent = self.inner.group_commit.inbox(shard).send(prepared.with_code(code)).await;
        match sent {
            Ok(sent) => Ok(sent),
            Err(SendError::Refused(Reason::RateLimited)) => {
                if let Some(at) = too_early {
                    return Err(StartError::TooEarly(at));
                }
                let waiting = if is_new {
                    self.cooled_down_at(shard, stream, &recipient).await
                } else {
                    self.may_resend_at(shard, stream, id).await
                };
                waiting.map_err(failed)?.map_or(Err(Reason::RateLimited.into()), Err)
            }
            Err(error) => Err(StartError::Send(error)),
        }
    }

    /// Returns how far the key's clock is ahead. Only a test key's clock can be moved.
    async fn code_clock_ms(&self, shard: Shard, access: &KeyAccess) -> Result<i64> {
        if access.stream().test { self.clock_ms(shard, access.reference).await } else { Ok(0) }
    }

    /// Returns the row of a new verification.
    fn new_code(
        &self,
        stream: EventStream,
        defaults: &CodeDefaults,
        of: &StartOf,
        number: &Number,
        now: Timestamp,
    ) -> CodeRow {
        let (locale, digits, ttl_s, name) = match of {
            StartOf::New { locale, digits, ttl_s, name, .. } => (*locale, *digits, *ttl_s, name),
            StartOf::Again(_) => (None, domain::verify::DEFAULT_DIGITS, 0, &None),
        };
        let kind = number.kind();
        let number = number.for_carrier(self.country_code());
        let name = name.as_ref().map(|name| name.as_str().to_owned());
        CodeRow {
            id: VerifyId(self.next_id(now)),
            application_id: stream.application_id,
            test: stream.test,
            country: HomeCountry::of_number(&number).code,
            number,
            kind,
            nonce: (self.entropy().number() >> 1).cast_signed(),
            digits,
            locale: locale.unwrap_or(defaults.settings.locale),
            name: name.unwrap_or_else(|| defaults.name.clone()),
            created_at: now,
            expires_at: now.plus_ms(ttl_s.saturating_mul(1000)),
            resends: None,
        }
    }

    /// Returns when the cool-down of a number ends. `None` if the cool-down isn't why a code was
    /// refused.
    async fn cooled_down_at(
        &self,
        shard: Shard,
        stream: EventStream,
        number: &str,
    ) -> Result<Option<StartError>> {
        let mut conn = self.store().read_at(shard).await?;
        let sent_at = verifications::last_sent(&mut conn, stream, number).await?;
        let ends_at = sent_at.map(|at| at.plus_ms(COOL_DOWN_MS)).filter(|at| *at > self.now());
        Ok(ends_at.map(StartError::TooEarly))
    }

    /// Returns why a code can't be sent again now. `None` if it can.
    async fn may_resend_at(
        &self,
        shard: Shard,
        stream: EventStream,
        id: VerifyId,
    ) -> Result<Option<StartError>> {
        let mut conn = self.store().read_at(shard).await?;
        let found = verifications::one(&mut conn, stream, id).await?;
        let refused = found.and_then(|found| found.state.resend(self.now()).err());
        Ok(refused.map(|refused| match refused {
            ResendRefusal::TooEarly(at) => StartError::TooEarly(at),
            ResendRefusal::Ended => Reason::VerifyEnded.into(),
        }))
    }

    /// Returns at most `limit` verifications of a key after the one with the ID `after`, oldest
    /// first.
    pub async fn verifications(
        &self,
        access: &KeyAccess,
        after: VerifyId,
        limit: i64,
    ) -> Result<Vec<VerificationRecord>> {
        let mut conn = self.read_of(access.reference).await?;
        verifications::list(&mut conn, access.stream(), after, limit).await
    }

    /// Returns the figures of an application's verifications since a day (UTC), counted since
    /// 1970-01-01.
    pub async fn verify_figures(
        &self,
        access: &KeyAccess,
        from_day: i64,
    ) -> Result<Vec<VerifyFigures>> {
        let mut conn = self.read_of(access.reference).await?;
        verifications::figures(&mut conn, access.stream(), from_day).await
    }
}

/// Returns the masked text, and the code to send.
fn prepared(
    secret: &[u8; SECRET_BYTES],
    row: CodeRow,
    domain: Option<&WebOtpDomain>,
    digest: String,
    refused: Option<Reason>,
) -> (MessageText, PreparedCode) {
    let masked = CodeText { locale: row.locale, name: &row.name, domain }.with(MASK);
    let code = code_of(secret, row.test, (row.id, row.nonce, row.digits));
    let text = MessageText::from_stored(unmasked(&masked, &code));
    (MessageText::from_stored(masked), PreparedCode { row, text, digest, refused })
}

/// Returns the digest of a request. It contains neither the code nor the application's settings, so
/// a repeated request has the same digest even if the settings have changed.
fn digest_of(of: &StartOf) -> String {
    let mut digest = Digest::new("verify/start");
    match of {
        StartOf::New { number, locale, digits, ttl_s, name } => {
            digest.text(number.kind().as_str());
            digest.text(number.digits());
            digest.text(locale.map_or("", Locale::as_str));
            digest.text(&digits.to_string());
            digest.text(&ttl_s.to_string());
            digest.text(name.as_ref().map_or("", SenderName::as_str));
        }
        StartOf::Again(id) => digest.text(&id.to_string()),
    }
    digest.finish()
}
