//! Staff actions on accounts: list, disable, enable, sign out, promote, demote, and remove a lost
//! second factor.

use domain::Timestamp;
use domain::decision;
use domain::records::AccountRecord;

use crate::accounts::second_factor::FactorChange;
use crate::wakeups::Wakeup;
use crate::{Accounts, Verb};
use store::accounts::{self, AccountRow};
use store::audit::{self, Actor};
use store::error::{Refusal, Result};
use store::{WriteTx, applications, second_factors, sessions};

/// An account as staff see it.
#[derive(Clone, Debug)]
pub struct AccountDetail {
    pub account: AccountRecord,
    pub created_at: Timestamp,
    pub disabled_at: Option<Timestamp>,
    pub disabled_reason: Option<String>,
}

impl From<AccountRow> for AccountDetail {
    fn from(row: AccountRow) -> Self {
        Self {
            account: row.record,
            created_at: row.created_at,
            disabled_at: row.disabled_at,
            disabled_reason: row.disabled_reason,
        }
    }
}

/// A change that staff make to an account.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Disable,
    Enable,
    SignOut,
    Promote,
    Demote,
    ResetFactor,
}

impl Accounts<'_> {
    /// Returns all accounts, ordered by email.
    pub async fn all(&self) -> Result<Vec<AccountDetail>> {
        let rows = accounts::all(&mut self.store().read().await?).await?;
        Ok(rows.into_iter().map(Into::into).collect())
    }

    /// Returns the account with this email, as staff see it.
    ///
    /// # Errors
    /// `NoSuchAccount`.
    pub async fn account_detail(&self, email: &str) -> Result<AccountDetail> {
        let mut conn = self.store().read().await?;
        let row = accounts::by_email(&mut conn, &email.trim().to_lowercase()).await?;
        Ok(row.ok_or(Refusal::NoSuchAccount)?.into())
    }

    /// Disables an account. Nobody can sign in, its devices are signed out, and its keys can't
    /// send. Its applications keep their statuses.
    ///
    /// # Errors
    /// `NoSuchAccount`, `ReasonMissing`, `ReasonInvalid`, `AccountDisabledAlready`, `LastStaff`.
    pub async fn disable_account(&self, actor: &Actor, email: &str, reason: &str) -> Result<()> {
        let reason = decision::parse_reason(reason).map_err(Refusal::from)?;
        self.change_account(*actor, email, Change::Disable, Some(reason)).await
    }

    /// Enables an account that [`Accounts::disable_account`] disabled. Its deferred messages
    /// continue.
    ///
    /// # Errors
    /// `NoSuchAccount`, `AccountNotDisabled`, `AccountClosed`.
    pub async fn enable_account(&self, actor: &Actor, email: &str) -> Result<()> {
        self.change_account(*actor, email, Change::Enable, None).await?;
        self.inner.wake(Wakeup::Reinstated);
        Ok(())
    }

    /// Signs out every device of an account.
    ///
    /// # Errors
    /// `NoSuchAccount`.
    pub async fn sign_out_account(&self, actor: &Actor, email: &str) -> Result<()> {
        self.change_account(*actor, email, Change::SignOut, None).await
    }

    /// Makes a customer a staff member, and signs out every device of the account.
    ///
    /// # Errors
    /// `NoSuchAccount`, `StaffAlready`. `FactorBeforeStaff`, unless the operator promotes the
    /// account.
    pub async fn promote_account(&self, actor: &Actor, email: &str) -> Result<()> {
        self.change_account(*actor, email, Change::Promote, None).await
    }

    /// Makes a staff member a customer, and signs out every device of the account.
    ///
    /// # Errors
    /// `NoSuchAccount`, `NotStaff`, `LastStaff`.
    pub async fn demote_account(&self, actor: &Actor, email: &str) -> Result<()> {
        self.change_account(*actor, email, Change::Demote, None).await
    }

    /// Removes a lost second factor, and signs out every device of the account.
    ///
    /// # Errors
    /// `NoSuchAccount`, `NoSecondFactor`.
    pub async fn reset_factor(&self, actor: &Actor, email: &str) -> Result<()> {
        self.change_account(*actor, email, Change::ResetFactor, None).await
    }

    async fn change_account(
        &self,
        actor: Actor,
        email: &str,
        change: Change,
        reason: Option<String>,
    ) -> Result<()> {
        let verb = self.changing_account(actor, email, change, reason).await?;
        self.in_transaction(verb).await
    }

    /// Returns the [`Verb`] that changes an account.
    pub(crate) async fn changing_account(
        &self,
        actor: Actor,
        email: &str,
        change: Change,
        reason: Option<String>,
    ) -> Result<Verb<()>> {
        let found = self.find_account(email).await?;
        let id = found.ok_or(Refusal::NoSuchAccount)?.id;
        let shard = self.shard_of_account(id).await?;
        let factor_removed = self.factor_changed(id, FactorChange::Removed);
        Ok(Box::new(move |tx, now| {
            Box::pin(async move {
                tx.at(shard);
                let row = accounts::by_id(tx, id).await?;
                let row = row.ok_or(Refusal::NoSuchAccount)?;
                refuse(tx, &actor, &row, change).await?;
                make(tx, id, change, reason.as_deref(), now).await?;
                if change != Change::Enable {
                    sessions::delete_others(tx, id, "").await?;
                }
                if change == Change::ResetFactor {
                    factor_removed.store(tx, now).await?;
                }
                let subject = Actor::Account(id).to_string();
                let (action, changed) = (audited(change), changed(change));
                let changed = changed.because(reason.as_deref());
                audit::insert_change(tx, now, &actor, action, &subject, changed).await
            })
        }))
    }
}

/// Refuses a change that would change nothing, would leave no staff, or isn't allowed.
async fn refuse(
    tx: &mut WriteTx<'_>,
    actor: &Actor,
    row: &AccountRow,
    change: Change,
) -> Result<()> {
    let (staff, disabled) = (row.record.staff, row.disabled_at.is_some());
    let refusal = match change {
        Change::Disable if disabled => Some(Refusal::AccountDisabledAlready),
        Change::Enable if row.record.closed => Some(Refusal::AccountClosed),
        Change::Enable if !disabled => Some(Refusal::AccountNotDisabled),
        Change::Promote if staff => Some(Refusal::StaffAlready),
        // If an account without a second factor became staff, anybody with its password could set
        // up a second factor of their own. The operator is exempt, so that an installation can get
        // its first staff member.
        Change::Promote if !row.record.second_factor && *actor != Actor::CommandLine => {
            Some(Refusal::FactorBeforeStaff)
        }
        Change::Demote if !staff => Some(Refusal::NotStaff),
        Change::Disable | Change::Demote if staff && !disabled => {
            let last = accounts::staff(tx).await?.len() <= 1;
            last.then_some(Refusal::LastStaff)
        }
        _ => None,
    };
    refusal.map_or(Ok(()), |refusal| Err(refusal.into()))
}

async fn make(
    tx: &mut WriteTx<'_>,
    id: i64,
    change: Change,
    reason: Option<&str>,
    now: Timestamp,
) -> Result<()> {
    match change {
        Change::Disable => {
            accounts::set_disabled(tx, id, reason.map(|reason| (now, reason))).await?;
            applications::set_disabled(tx, id, Some(now)).await
        }
        Change::Enable => {
            accounts::set_disabled(tx, id, None).await?;
            applications::set_disabled(tx, id, None).await
        }
        Change::SignOut => Ok(()),
        Change::Promote => accounts::set_staff(tx, id, true).await,
        Change::Demote => accounts::set_staff(tx, id, false).await,
        Change::ResetFactor => {
            if !second_factors::remove(tx, id).await? {
                return Err(Refusal::NoSecondFactor.into());
            }
            Ok(())
        }
    }
}

const fn audited(change: Change) -> &'static str {
    match change {
        Change::Disable => "account.disable",
        Change::Enable => "account.enable",
        Change::SignOut => "account.sign_out",
        Change::Promote => "account.promote",
        Change::Demote => "account.demote",
        Change::ResetFactor => "account.reset_factor",
    }
}

/// Returns the state before and after a change, for the audit log.
fn changed(change: Change) -> audit::Change<'static> {
    let changed = audit::Change::of;
    match change {
        Change::Disable => changed("enabled", "disabled"),
        Change::Enable => changed("disabled", "enabled"),
        Change::SignOut => audit::Change::default(),
        Change::Promote => changed("customer", "staff"),
        Change::Demote => changed("staff", "customer"),
        Change::ResetFactor => changed("second factor", "no second factor"),
    }
}
