//! Staff actions on accounts: list, disable, enable, sign out, promote, demote, and remove a lost
//! second factor.

use domain::Timestamp;
use domain::decision;
use domain::records::AccountRecord;

use crate::accounts::second_factor::FactorChange;
use crate::mail::{self, texts};
use crate::transactions::work;
use crate::wakeups::Wakeup;
use crate::{Accounts, Verb};
use store::accounts::{self, AccountRow};
use store::audit::{self, Actor};
use store::error::{Refusal, Result};
use store::{Tx, applications, second_factors, sessions};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountChange {
    Disable,
    Enable,
    /// Signs out every device.
    SignOut,
    /// Makes a customer a staff member.
    Promote,
    /// Makes a staff member a customer.
    Demote,
    /// Removes a lost second factor.
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
    /// `NoSuchAccount`, `ReasonMissing`, `ReasonInvalid`, `OwnAccount`, `AccountDisabledAlready`,
    /// `LastStaff`.
    pub async fn disable_account(&self, actor: &Actor, email: &str, reason: &str) -> Result<()> {
        let reason = decision::parse_reason(reason).map_err(Refusal::from)?;
        let change = AccountChange::Disable;
        let verb = self.changing_account(*actor, email, change, Some(reason)).await?;
        self.in_transaction(verb).await
    }

    /// Enables an account that [`Accounts::disable_account`] disabled. Its deferred messages
    /// continue.
    ///
    /// # Errors
    /// `NoSuchAccount`, `AccountNotDisabled`, `AccountClosed`.
    pub async fn enable_account(&self, actor: &Actor, email: &str) -> Result<()> {
        self.change_account(actor, email, AccountChange::Enable).await?;
        self.inner.wake(Wakeup::Reinstated);
        Ok(())
    }

    /// Changes an account. Any change but [`AccountChange::Enable`] signs out its devices. The
    /// account's owner gets a mail about a new role and about a removed second factor.
    ///
    /// # Errors
    /// `NoSuchAccount`, `OwnAccount`, `StaffAlready`, `NotStaff`, `LastStaff`, `NoSecondFactor`.
    /// `FactorBeforeStaff`, unless the operator promotes the account.
    pub async fn change_account(
        &self,
        actor: &Actor,
        email: &str,
        change: AccountChange,
    ) -> Result<()> {
        let verb = self.changing_account(*actor, email, change, None).await?;
        self.in_transaction(verb).await
    }

    /// Returns the [`Verb`] that changes an account.
    pub(crate) async fn changing_account(
        &self,
        actor: Actor,
        email: &str,
        change: AccountChange,
        reason: Option<String>,
    ) -> Result<Verb<()>> {
        let found = self.find_account(email).await?;
        let id = found.ok_or(Refusal::NoSuchAccount)?.id;
        let shard = self.shard_of_account(id).await?;
        let factor_removed = self.factor_changed(id, FactorChange::Removed);
        Ok(Box::new(work!(|tx, now| {
            tx.at(shard);
            let row = accounts::by_id(tx, id).await?;
            let row = row.ok_or(Refusal::NoSuchAccount)?;
            refuse(tx, &actor, &row, change).await?;
            make(tx, id, change, reason.as_deref(), now).await?;
            if change != AccountChange::Enable {
                sessions::delete_others(tx, id, "").await?;
            }
            match change {
                AccountChange::ResetFactor => factor_removed.store(tx, now).await?,
                AccountChange::Promote | AccountChange::Demote => {
                    let staff = change == AccountChange::Promote;
                    mail::put(tx, &row.record, &texts::role_changed(staff), now).await?;
                }
                _ => {}
            }
            let subject = Actor::Account(id).to_string();
            let (action, changed) = (audited(change), changed(change));
            let changed = changed.because(reason.as_deref());
            audit::insert_change(tx, now, &actor, action, &subject, changed).await
        })))
    }
}

/// Refuses a change that would change nothing, would leave no staff, or isn't allowed. Staff change
/// their own account on the account's own pages, which have stricter checks.
async fn refuse(
    tx: &mut Tx<'_>,
    actor: &Actor,
    row: &AccountRow,
    change: AccountChange,
) -> Result<()> {
    let (staff, disabled) = (row.record.staff, row.disabled_at.is_some());
    let refusal = match change {
        _ if *actor == Actor::Account(row.record.id) => Some(Refusal::OwnAccount),
        AccountChange::Disable if disabled => Some(Refusal::AccountDisabledAlready),
        AccountChange::Enable if row.record.closed => Some(Refusal::AccountClosed),
        AccountChange::Enable if !disabled => Some(Refusal::AccountNotDisabled),
        AccountChange::Promote if staff => Some(Refusal::StaffAlready),
        // If an account without a second factor became staff, anybody with its password could set
        // up a second factor of their own. The operator is exempt, so that an installation can get
        // its first staff member.
        AccountChange::Promote if !row.record.second_factor && *actor != Actor::CommandLine => {
            Some(Refusal::FactorBeforeStaff)
        }
        AccountChange::Demote if !staff => Some(Refusal::NotStaff),
        AccountChange::Disable | AccountChange::Demote if staff && !disabled => {
            let last = accounts::staff(tx).await?.len() <= 1;
            last.then_some(Refusal::LastStaff)
        }
        _ => None,
    };
    refusal.map_or(Ok(()), |refusal| Err(refusal.into()))
}

async fn make(
    tx: &mut Tx<'_>,
    id: i64,
    change: AccountChange,
    reason: Option<&str>,
    now: Timestamp,
) -> Result<()> {
    match change {
        AccountChange::Disable => {
            accounts::set_disabled(tx, id, reason.map(|reason| (now, reason))).await?;
            applications::set_disabled(tx, id, Some(now)).await
        }
        AccountChange::Enable => {
            accounts::set_disabled(tx, id, None).await?;
            applications::set_disabled(tx, id, None).await
        }
        AccountChange::SignOut => Ok(()),
        AccountChange::Promote => accounts::set_staff(tx, id, true).await,
        AccountChange::Demote => accounts::set_staff(tx, id, false).await,
        AccountChange::ResetFactor => {
            if !second_factors::remove(tx, id).await? {
                return Err(Refusal::NoSecondFactor.into());
            }
            Ok(())
        }
    }
}

const fn audited(change: AccountChange) -> &'static str {
    match change {
        AccountChange::Disable => "account.disable",
        AccountChange::Enable => "account.enable",
        AccountChange::SignOut => "account.sign_out",
        AccountChange::Promote => "account.promote",
        AccountChange::Demote => "account.demote",
        AccountChange::ResetFactor => "account.reset_factor",
    }
}

/// Returns the state before and after a change, for the audit log.
fn changed(change: AccountChange) -> audit::Change<'static> {
    let changed = audit::Change::of;
    match change {
        AccountChange::Disable => changed("enabled", "disabled"),
        AccountChange::Enable => changed("disabled", "enabled"),
        AccountChange::SignOut => audit::Change::default(),
        AccountChange::Promote => changed("customer", "staff"),
        AccountChange::Demote => changed("staff", "customer"),
        AccountChange::ResetFactor => changed("second factor", "no second factor"),
    }
}
