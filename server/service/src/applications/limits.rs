//! The limits that the owner of an application sets.

use domain::limits::LimitsChange;
use domain::{ApiKey, ApplicationId, Reason, Reference, SendLimits};

use crate::admission::KeyAccess;
use crate::admission::idempotency::{Digest, IdempotencyKey, Once};
use crate::transactions::work;
use crate::{Applications, Messages, zones};
use store::accounts;
use store::applications::{self, KeyRow};
use store::audit::{self, Actor, Change};
use store::error::{Refusal, Result};
use store::query::Conn;

const HOUR_S: i64 = 60 * 60;

/// Who changes limits.
#[derive(Clone)]
pub enum LimitsAuthor {
    /// The owner's account, in the portal.
    Owner(i64),
    /// A program, with an API key and, in some cases, an idempotency key.
    Program(KeyAccess, Option<IdempotencyKey>),
}

/// The limits after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedLimits {
    pub limits: SendLimits,
    /// Whether an earlier request with the same idempotency key made the change.
    pub replayed: bool,
}

impl Applications<'_> {
    /// Returns the limits of an application, with its account's time zone.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn send_limits(&self, reference: Reference) -> Result<SendLimits> {
        let row = self.0.messages().key_row(reference).await?;
        let row = row.ok_or(Refusal::NoSuchApplication)?;
        let mut limits = row.limits().clone();
        // Applications whose owner has set no limits don't store the zone either.
        if limits.zone.is_none() {
            let mut conn = self.store().read_at(self.shard_of(reference).await?).await?;
            let owner = applications::owner(&mut conn, row.id).await?;
            let account = accounts::by_id(&mut conn, owner.account_id).await?;
            limits.zone = account.and_then(|account| account.record.time_zone);
        }
        Ok(limits)
    }

    /// Changes the limits of an application. They take effect in the next commit group of every
    /// process.
    ///
    /// # Errors
    /// `NoSuchApplication`, and for programs `LimitsLocked` and `IdempotencyMismatch`.
    pub async fn change_limits(
        &self,
        reference: Reference,
        author: LimitsAuthor,
        change: LimitsChange,
    ) -> Result<ChangedLimits> {
        let changed = self.in_transaction_of(
            reference,
            work!(|tx, now| {
                let (id, before, account_id) = found(tx, reference, &author).await?;
                let once = author.once(&change);
                if let Some(once) = &once
                    && let Some(limits) = once.answered::<SendLimits>(tx, now).await?
                {
                    return Ok(ChangedLimits { limits, replayed: true });
                }
                let is_program = matches!(author, LimitsAuthor::Program(..));
                if is_program && !before.changed_by_api {
                    return Err(Refusal::LimitsLocked.into());
                }
                let account = accounts::by_id(tx, account_id).await?;
                let zone = account.and_then(|account| account.record.time_zone);
                let limits = SendLimits { zone, ..change.applied_to(&before) };
                applications::set_limits(tx, id, &limits).await?;
                let (old, new) = (before.differences(&limits), limits.differences(&before));
                if !new.is_empty() {
                    let (actor, subject) = (Actor::Account(account_id), reference.to_string());
                    let change = Change::of(&old, &new).because(is_program.then_some("by API"));
                    let action = "application.limits";
                    audit::insert_change(tx, now, &actor, action, &subject, change).await?;
                }
                if let Some(once) = once {
                    once.keep(tx, &limits, now).await?;
                }
                Ok(ChangedLimits { limits, replayed: false })
            }),
        );
        changed.await
    }
}

/// Returns an application with its limits and its owner. It must belong to the author.
async fn found(
    conn: Conn<'_>,
    reference: Reference,
    author: &LimitsAuthor,
) -> Result<(ApplicationId, SendLimits, i64)> {
    let row = applications::keys_by_reference(conn, reference).await?;
    let row: KeyRow = row.ok_or(Refusal::NoSuchApplication)?;
    let owner = applications::owner(conn, row.id).await?.account_id;
    if matches!(author, LimitsAuthor::Owner(account_id) if *account_id != owner) {
        return Err(Refusal::NoSuchApplication.into());
    }
    Ok((row.id, row.limits().clone(), owner))
}

impl LimitsAuthor {
    fn once(&self, change: &LimitsChange) -> Option<Once> {
        let Self::Program(access, key) = self else {
            return None;
        };
        let mut digest = Digest::new("limits");
        for (field, text) in change.fields() {
            digest.text(field.as_str());
            digest.text(text);
        }
        key.as_ref().map(|key| Once::new(access.stream(), key, digest))
    }
}

impl Messages<'_> {
    /// Returns the seconds after which a limit that refused a send may allow it. For the messages
    /// to a recipient, this is the length of the shortest limited window.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn limit_ends_in_s(&self, key: &ApiKey, reason: Reason) -> Result<i64> {
        let row = self.key_row(key.reference()).await?;
        let row = row.ok_or(Refusal::NoSuchApplication)?;
        let (limits, now) = (row.limits(), self.now());
        Ok(match reason {
            Reason::SpendCapReached => {
                zones::ms_until_tomorrow(limits.zone.as_deref(), now) / 1000 + 1
            }
            _ if limits.per_recipient_hour.is_some() => HOUR_S,
            _ => 24 * HOUR_S,
        })
    }
}
