//! Taking a message in: who may send, and what a send is.

use domain::reason::Reason;
use domain::{
    ApiKey, ApplicationStatus, Category, KeyKind, MessageText, Money, Number, Reference, RequestId,
    Timestamp, Transid,
};

use crate::Service;
use crate::error::Error;
use crate::store::applications::{self, KeyRow, SenderState};

/// Play money that a test key has at the start of each day (UTC), in units.
const PLAY_MONEY_UNITS: i64 = 1_000;

/// What a key opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyAccess {
    pub application_id: i64,
    pub reference: Reference,
    /// A test key sees its own messages and money alone, and so does a live key.
    pub kind: KeyKind,
}

/// What a key is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Balance and reports: also while Pending or Suspended.
    Read,
    Send,
}

/// One message to one number.
#[derive(Clone, Debug)]
pub struct SendRequest {
    pub key: ApiKey,
    pub number: Number,
    pub message: MessageText,
    pub requestid: Option<RequestId>,
}

/// An accepted message: durable, charged once, on its way to a carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    pub transid: Transid,
    pub pages: usize,
    pub cost: Money,
    /// After its own charge.
    pub balance: Money,
}

/// Why a message was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// Nothing was stored and nothing charged.
    Refused(Reason),
    /// The commit's outcome can't be found out: close the connection without an answer.
    Lost,
}

impl Service {
    /// What a key opens, judged in the contract's order: 504, 505, and for sends 503, 502, sender name.
    /// A send is judged again in the transaction that charges it.
    ///
    /// # Errors
    /// The first reason that applies.
    pub async fn authorize(&self, key: Option<&str>, usage: Use) -> Result<KeyAccess, Reason> {
        let key = key
            .and_then(|text| ApiKey::parse(text).ok())
            .ok_or(Reason::ApiInvalid)?;
        let row = self.key_row(key.reference()).await.map_err(|error| {
            tracing::error!(detail = ?error, "a key can't be looked up");
            error.reason()
        })?;
        let row = row
            .filter(|row| row.holds(&key))
            .ok_or(Reason::ApiInvalid)?;
        match usage {
            Use::Read => applicable(&row)?,
            Use::Send => admit(&row, key.kind())?,
        }
        let (reference, kind) = (key.reference(), key.kind());
        Ok(KeyAccess {
            application_id: row.id,
            reference,
            kind,
        })
    }

    async fn key_row(&self, reference: Reference) -> Result<Option<KeyRow>, Error> {
        let mut conn = self.store().read().await?;
        applications::keys_by_reference(&mut conn, reference).await
    }

    /// What the key can still spend.
    pub async fn balance(&self, access: &KeyAccess) -> Result<Money, Error> {
        let mut conn = self.store().read().await?;
        let found = applications::balances(&mut conn, access.application_id).await?;
        let (balance, test_balance, test_day) =
            found.ok_or(crate::error::Refusal::NoSuchApplication)?;
        Ok(match access.kind {
            KeyKind::Live => balance,
            KeyKind::Test => play_money(test_balance, test_day, self.now()),
        })
    }

    /// Accepts a message: stored, charged and queued in one transaction, and answered after its commit.
    /// Dropping the future changes nothing of that: the writer owns the work.
    ///
    /// # Errors
    /// See [`SendError`].
    pub async fn send(&self, request: SendRequest) -> Result<Sent, SendError> {
        self.inner.writer.send(request).await
    }
}

/// The play money of a test key now: topped up at the first use of a day.
pub(crate) fn play_money(stored: Money, day: i64, now: Timestamp) -> Money {
    if day < now.day() {
        play_money_max()
    } else {
        stored
    }
}

/// What a top-up makes of it.
pub(crate) fn play_money_max() -> Money {
    Money::from_units(PLAY_MONEY_UNITS).unwrap_or_default()
}

fn applicable(row: &KeyRow) -> Result<(), Reason> {
    if row.category == Category::Sms {
        Ok(())
    } else {
        Err(Reason::ApiNotApplicable)
    }
}

/// Whether an application may send with such a key; the first reason why not.
pub(crate) fn admit(row: &KeyRow, kind: KeyKind) -> Result<(), Reason> {
    applicable(row)?;
    match (row.status, kind) {
        (ApplicationStatus::Suspended, _) => return Err(Reason::ApiSuspended),
        (ApplicationStatus::Pending, KeyKind::Live) => return Err(Reason::ApiPending),
        _ => {}
    }
    match (row.sender_state, kind) {
        (_, KeyKind::Test) | (SenderState::None | SenderState::Accepted, _) => Ok(()),
        (SenderState::Pending, KeyKind::Live) => Err(Reason::SenderPending),
        (SenderState::Rejected, KeyKind::Live) => Err(Reason::SenderRejected),
    }
}

/// With a test key, some local numbers answer an error's code.
pub(crate) fn rehearsed(number: &Number, kind: KeyKind) -> Option<Reason> {
    let local = number.kind() == domain::Kind::Local;
    if kind != KeyKind::Test || !local {
        return None;
    }
    match number.digits() {
        "00000501" => Some(Reason::InsufficientFunds),
        "00000502" => Some(Reason::ApiPending),
        "00000503" => Some(Reason::ApiSuspended),
        "00000504" => Some(Reason::ApiInvalid),
        "00000505" => Some(Reason::ApiNotApplicable),
        _ => None,
    }
}
