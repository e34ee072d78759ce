//! Idempotency keys, which make requests safe to repeat. The transaction that charges a request
//! also stores its answer.

use domain::admission::EarlierRequest;
use domain::timestamp::DAY_MS;
use domain::{EventStream, MessageText, Number, RequestId, Schedule, Timestamp, Validity};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use store::error::{Error, Fault, Refusal, Result};
use store::idempotency::{self, KeptAnswer, KeptKey};
use store::{Tx, row};

/// How long an answer is stored.
const KEPT_MS: i64 = DAY_MS;
/// The maximum number of characters of an idempotency key.
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;

/// A key that the client chooses for a request, so that a repeated request is recognized. Only the
/// key's SHA-256 is stored, because some clients use a value that must not be stored, such as the
/// API key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Parses a key of 1 to 255 characters without NUL.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = !text.is_empty()
            && !text.contains('\0')
            && text.chars().count() <= IDEMPOTENCY_KEY_CHARS_MAX;
        fits.then(|| Self(hex::encode(Sha256::digest(text))))
    }

    /// Returns the key's SHA-256 in hexadecimal.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the time before which stored answers have expired.
pub(crate) fn kept_since(now: Timestamp) -> Timestamp {
    now.plus_ms(-KEPT_MS)
}

/// Compares the digest of a request with that of the stored answer.
pub(crate) fn earlier(kept: Option<&KeptAnswer>, digest: &str) -> EarlierRequest {
    match kept {
        None => EarlierRequest::None,
        Some(kept) if kept.digest == digest => EarlierRequest::Same,
        Some(_) => EarlierRequest::Other,
    }
}

/// Returns the stored answer to the earlier request.
///
/// # Errors
/// `Failed` if the stored answer can't be read.
pub(crate) fn recall<T: DeserializeOwned>(kept: &KeptAnswer) -> Result<T> {
    serde_json::from_str(&kept.answer).map_err(|_| {
        Error::Failed(Fault::Corrupt {
            table: "idempotency",
            column: "answer".into(),
            value: kept.answer.clone(),
        })
    })
}

/// Returns the digest of the content of a single send. It doesn't depend on how the request was
/// written.
pub(crate) fn digest_of_send(
    number: &Number,
    message: &MessageText,
    requestid: Option<&RequestId>,
    schedule: Schedule,
) -> String {
    let mut digest = Digest::new("send");
    digest.text(number.kind().as_str());
    digest.text(number.digits());
    digest.text(message.as_str());
    digest.optional(requestid.map(RequestId::as_str));
    digest.schedule(schedule);
    digest.finish()
}

/// Returns the digest of the content of an upload: its mode, its file, the message to all numbers,
/// the `requestid` and the schedule.
pub(crate) fn digest_of_bulk(
    mode: &str,
    file: &[u8],
    message: Option<&MessageText>,
    requestid: Option<&RequestId>,
    schedule: Schedule,
) -> String {
    let mut digest = Digest::new(mode);
    digest.bytes(file);
    digest.optional(message.map(MessageText::as_str));
    digest.optional(requestid.map(RequestId::as_str));
    digest.schedule(schedule);
    digest.finish()
}

/// A request's idempotency key, and the digest of the request.
#[derive(Clone)]
pub(crate) struct Once(KeptKey, String);

impl Once {
    /// `stream` is that of the request's API key.
    pub(crate) fn new(stream: EventStream, key: &IdempotencyKey, digest: Digest) -> Self {
        let EventStream { application_id, test } = stream;
        let key = key.as_str().to_owned();
        Self(KeptKey { application_id, test, key }, digest.finish())
    }

    /// Returns the answer to an earlier request with the same key, if there was one.
    ///
    /// # Errors
    /// `IdempotencyMismatch`.
    pub(crate) async fn answered<T: DeserializeOwned>(
        &self,
        tx: &mut Tx<'_>,
        now: Timestamp,
    ) -> Result<Option<T>> {
        let Self(key, digest) = self;
        let found = idempotency::find(tx, std::slice::from_ref(key), kept_since(now)).await?;
        let kept = found.into_iter().next().map(|(_, kept)| kept);
        match (earlier(kept.as_ref(), digest), kept) {
            (EarlierRequest::Same, Some(kept)) => recall(&kept).map(Some),
            (EarlierRequest::Other, _) => Err(Refusal::IdempotencyMismatch.into()),
            _ => Ok(None),
        }
    }

    /// Stores the answer for later requests with the same key.
    pub(crate) async fn keep<T: Serialize + Sync>(
        self,
        tx: &mut Tx<'_>,
        answer: &T,
        now: Timestamp,
    ) -> Result<()> {
        let Self(key, digest) = self;
        let answer = KeptAnswer { digest, answer: row::json(answer)? };
        idempotency::keep(tx, &[(key, answer)], now).await
    }
}

/// SHA-256 over fields. The length of each field comes before it, so that two different lists of
/// fields never give the same bytes.
pub(crate) struct Digest(Sha256);

impl Digest {
    pub(crate) fn new(what: &str) -> Self {
        let mut digest = Self(Sha256::new());
        digest.text(what);
        digest
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn schedule(&mut self, schedule: Schedule) {
        let times =
            [schedule.send_at.map(Timestamp::unix_ms), schedule.validity.map(Validity::minutes)];
        for time in times {
            self.optional(time.map(|time| time.to_string()).as_deref());
        }
    }

    fn optional(&mut self, text: Option<&str>) {
        self.0.update([u8::from(text.is_some())]);
        self.text(text.unwrap_or_default());
    }

    pub(crate) fn finish(self) -> String {
        hex::encode(self.0.finalize())
    }
}
