//! Applications: creating them, listing them, and changing their status.

pub(crate) mod alarms;
pub(crate) mod call_log;
mod first_steps;
mod history;
pub(crate) mod key_uses;
pub(crate) mod keys;
pub(crate) mod limits;
mod notices;
pub(crate) mod pumping;
mod readiness;
mod review;
pub(crate) mod sender_names;
mod statement;
pub(crate) mod trials;
mod viewers;

use domain::application::StatusAction;
use domain::decision::{self, Decided};
use domain::readiness::blockers;
use domain::records::ApplicationRecord;
use domain::{
    ApiKey, ApplicationId, ApplicationName, ApplicationStatus, Category, KeyKind, LostAnswer,
    Money, Reference, SenderName, SenderState, SenderStatus,
};

use crate::Applications;
use crate::application_events::Cause;
use crate::mail::{self, texts};
use crate::money::test_money::test_money;
use crate::transactions::work;
use crate::wakeups::Wakeup;
use store::applications::{self, ApplicationIds, ApplicationRow, NewRow, StatusChange};
use store::audit::{self, Actor, Change};
use store::error::{Error, Fault, Refusal, Result};
use store::query::Conn;
use store::{accounts, api_keys, batches, senders, tally};

pub use statement::StatementFilter;

/// The maximum number of random references to try before all references count as used up.
const REFERENCE_ATTEMPTS: usize = 1000;
const REFERENCES: u64 = 1_000_000;

/// A new application's keys, which are shown only once.
#[derive(Debug)]
pub struct NewApplication {
    pub reference: Reference,
    pub live_key: ApiKey,
    pub test_key: ApiKey,
}

impl Applications<'_> {
    /// Returns an account's applications, oldest first.
    pub async fn of_account(&self, account_id: i64) -> Result<Vec<ApplicationRecord>> {
        let mut conn = self.read_of_account(account_id).await?;
        let rows = applications::by_account(&mut conn, account_id).await?;
        Ok(rows.into_iter().map(|row| self.shown(row)).collect())
    }

    pub async fn application(
        &self,
        account_id: i64,
        reference: Reference,
    ) -> Result<Option<ApplicationRecord>> {
        let row = self.application_row(reference).await?;
        Ok(row.filter(|row| row.account_id == account_id).map(|row| self.shown(row)))
    }

    /// Returns all applications, for staff.
    pub async fn all_applications(&self) -> Result<Vec<ApplicationRecord>> {
        let all = self.in_each_shard(|shard| async move {
            applications::all(&mut self.store().read_at(shard).await?).await
        });
        let mut rows: Vec<_> = all.await?.into_iter().flatten().collect();
        rows.sort_by_key(|row| row.id);
        Ok(rows.into_iter().map(|row| self.shown(row)).collect())
    }

    /// Returns any application, for staff.
    pub async fn find_application(
        &self,
        reference: Reference,
    ) -> Result<Option<ApplicationRecord>> {
        let row = self.application_row(reference).await?;
        Ok(row.map(|row| self.shown(row)))
    }

    pub(crate) async fn application_row(
        &self,
        reference: Reference,
    ) -> Result<Option<ApplicationRow>> {
        let Some(shard) = self.find_shard(reference).await? else {
            return Ok(None);
        };
        applications::by_reference(&mut self.store().read_at(shard).await?, reference).await
    }

    /// Creates a Pending application and its two keys.
    ///
    /// # Errors
    /// `EmailNotConfirmed`, `CategoryTaken`, `SenderlessTaken`, `SenderNameTaken`,
    /// `AccountDisabled`.
    pub async fn create_application(
        &self,
        account_id: i64,
        category: Category,
        sender: Option<&SenderName>,
    ) -> Result<NewApplication> {
        let (service, sender) = (self.0.clone(), sender.cloned());
        let shard = self.shard_of_account(account_id).await?;
        self.in_transaction(work!(|tx, now| {
            tx.at(shard);
            let account = accounts::by_id(tx, account_id).await?;
            // Disabling an account disables its existing applications, so a disabled account
            // must not get new ones.
            if account.is_some_and(|account| account.disabled_at.is_some()) {
                return Err(Refusal::AccountDisabled.into());
            }
            if service.accounts().must_confirm_in(tx, account_id).await? {
                return Err(Refusal::EmailNotConfirmed.into());
            }
            if let Some(name) = &sender {
                refuse_taken(tx, name, account_id).await?;
            }
            let state = if sender.is_some() { SenderState::Pending } else { SenderState::None };
            let (id, keys) =
                service.applications().insert_application(tx, account_id, category, state).await?;
            if let Some(name) = &sender {
                senders::insert(tx, id, name.as_str(), now).await?;
            }
            let actor = Actor::Account(account_id);
            let subject = keys.reference.to_string();
            let detail = Some(category.as_str());
            audit::insert(tx, now, &actor, "application.create", &subject, detail).await?;
            Ok(keys)
        }))
        .await
    }

    /// Inserts an application with a free reference. If several forms arrive at once, the unique
    /// indexes decide. A query afterwards finds out why an insert failed.
    async fn insert_application(
        &self,
        conn: Conn<'_>,
        account_id: i64,
        category: Category,
        sender_state: SenderState,
    ) -> Result<(ApplicationId, NewApplication)> {
        for _ in 0..REFERENCE_ATTEMPTS {
            let number = u32::try_from(self.entropy().number() % REFERENCES).unwrap_or_default();
            let reference = Reference::from_number(number);
            let live_key = ApiKey::from_entropy(reference, KeyKind::Live, self.entropy().bytes());
            let test_key = ApiKey::from_entropy(reference, KeyKind::Test, self.entropy().bytes());
            let new = NewRow {
                account_id,
                category,
                reference,
                live_hash: &live_key.hash(),
                test_hash: &test_key.hash(),
                sender_state,
            };
            let now = self.now();
            if let Some(id) = applications::insert(conn, &new, now).await? {
                for key in [&live_key, &test_key] {
                    api_keys::made(conn, (reference, key.kind()), key.last_four(), now).await?;
                }
                return Ok((id, NewApplication { reference, live_key, test_key }));
            }
            if applications::has_category(conn, account_id, category).await? {
                return Err(Refusal::CategoryTaken.into());
            }
            if sender_state == SenderState::None
                && applications::has_senderless(conn, account_id).await?
            {
                return Err(Refusal::SenderlessTaken.into());
            }
        }
        Err(Error::Failed(Fault::ReferencesUsedUp))
    }

    /// Asks staff to approve a Pending application.
    ///
    /// # Errors
    /// `NoSuchApplication`, `ActivationNotPossible`.
    pub async fn request_activation(&self, account_id: i64, reference: Reference) -> Result<()> {
        self.in_transaction_of(
            reference,
            work!(|tx, now| {
                let row = owned(tx, account_id, reference).await?;
                let is_pending = row.record.status == ApplicationStatus::Pending;
                // A repeated request keeps its position in the list.
                if is_pending && row.record.activation_requested_at.is_some() {
                    return Ok(());
                }
                if !applications::set_activation(tx, row.id, Some(now)).await? {
                    return Err(Refusal::ActivationNotPossible { status: row.record.status }.into());
                }
                let (actor, subject) = (Actor::Account(account_id), reference.to_string());
                audit::insert(tx, now, &actor, "application.request", &subject, None).await
            }),
        )
        .await
    }

    /// Whether an application can be deleted: it never sent a live message and has no balance.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn can_delete(&self, account_id: i64, reference: Reference) -> Result<bool> {
        let mut conn = self.read_of(reference).await?;
        let row = owned(&mut conn, account_id, reference).await?;
        is_unused(&mut conn, &row).await
    }

    /// Deletes an application that never sent a live message and has no balance. Its reference is
    /// never given to another application.
    ///
    /// # Errors
    /// `NoSuchApplication`, `ApplicationInUse`.
    pub async fn delete_application(&self, account_id: i64, reference: Reference) -> Result<()> {
        self.in_transaction_of(
            reference,
            work!(|tx, now| {
                let row = owned(tx, account_id, reference).await?;
                if !is_unused(tx, &row).await? {
                    return Err(Refusal::ApplicationInUse.into());
                }
                let newest = senders::of_application(tx, row.id, 1).await?.pop();
                if let Some(request) = newest.filter(|one| one.status == SenderStatus::Pending) {
                    senders::withdraw(tx, request.id, now).await?;
                }
                applications::delete(tx, row.id, now).await?;
                let (actor, subject) = (Actor::Account(account_id), reference.to_string());
                let name = row.record.display_name();
                audit::insert(tx, now, &actor, "application.delete", &subject, Some(&name)).await
            }),
        )
        .await
    }

    /// Sets the display name of an application. `None` restores the default one.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn set_name(
        &self,
        account_id: i64,
        reference: Reference,
        name: Option<&ApplicationName>,
    ) -> Result<()> {
        let name = name.map(ToString::to_string);
        self.in_transaction_of(
            reference,
            work!(|tx, now| {
                let row = owned(tx, account_id, reference).await?;
                let before = row.record.display_name();
                applications::set_name(tx, row.id, name.as_deref()).await?;
                let after = ApplicationRecord { name, ..row.record }.display_name();
                if before == after {
                    return Ok(());
                }
                let (actor, subject) = (Actor::Account(account_id), reference.to_string());
                let change = Change::of(&before, &after);
                audit::insert_change(tx, now, &actor, "application.name", &subject, change).await
            }),
        )
        .await
    }

    /// Sets what happens to the application's messages from now on if a carrier's answer is lost.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn set_lost_answer(
        &self,
        account_id: i64,
        reference: Reference,
        policy: LostAnswer,
    ) -> Result<()> {
        self.in_transaction_of(
            reference,
            work!(|tx, now| {
                let row = owned(tx, account_id, reference).await?;
                applications::set_lost_answer(tx, row.id, policy).await?;
                let (actor, subject) = (Actor::Account(account_id), reference.to_string());
                let change = Change::of(row.record.lost_answer.as_str(), policy.as_str());
                let action = "application.lost_answer";
                audit::insert_change(tx, now, &actor, action, &subject, change).await
            }),
        )
        .await
    }

    /// Changes a Pending application to Active, even if nobody requested activation.
    ///
    /// # Errors
    /// `NoSuchApplication`, `OwnApplication`, `StatusConflict`.
    pub async fn approve(&self, actor: &Actor, reference: Reference) -> Result<ApplicationRecord> {
        self.change_status(*actor, reference, StatusAction::Approve, None).await
    }

    /// Changes a Pending or Active application to Suspended. Its queued messages wait until it is
    /// reinstated.
    ///
    /// # Errors
    /// `NoSuchApplication`, `StatusConflict`, `ReasonMissing`, `ReasonInvalid`.
    pub async fn suspend(
        &self,
        actor: &Actor,
        reference: Reference,
        reason: &str,
    ) -> Result<ApplicationRecord> {
        let reason = Some(decision::parse_reason(reason).map_err(Refusal::from)?);
        self.change_status(*actor, reference, StatusAction::Suspend, reason).await
    }

    /// Changes a Suspended application back to its earlier status.
    ///
    /// # Errors
    /// `NoSuchApplication`, `OwnApplication`, `StatusConflict`.
    pub async fn reinstate(
        &self,
        actor: &Actor,
        reference: Reference,
    ) -> Result<ApplicationRecord> {
        self.change_status(*actor, reference, StatusAction::Reinstate, None).await
    }

    /// Refuses an action by which a member of staff favours an application of their own.
    ///
    /// # Errors
    /// `OwnApplication`, unless the settings allow such actions.
    pub(crate) fn refuse_own(&self, actor: &Actor, row: &ApplicationRow) -> Result<()> {
        if self.is_own(actor, row) {
            return Err(Refusal::OwnApplication.into());
        }
        Ok(())
    }

    /// Whether the application is the actor's own, and the settings forbid favouring it.
    pub(crate) fn is_own(&self, actor: &Actor, row: &ApplicationRow) -> bool {
        *actor == Actor::Account(row.account_id) && !self.limits().own_applications
    }

    async fn change_status(
        &self,
        actor: Actor,
        reference: Reference,
        action: StatusAction,
        reason: Option<String>,
    ) -> Result<ApplicationRecord> {
        let service = self.0.clone();
        let changed = self
            .in_transaction_of(
                reference,
                work!(|tx, now| {
                    let row = applications::by_reference(tx, reference)
                        .await?
                        .ok_or(Refusal::NoSuchApplication)?;
                    if action != StatusAction::Suspend {
                        service.applications().refuse_own(&actor, &row)?;
                    }
                    let from = row.record.status;
                    let before = row.status_before.unwrap_or(ApplicationStatus::Pending);
                    let subject = reference.to_string();
                    let Some(to) = from.after(action, before) else {
                        let decided = audit::last(tx, &subject, DECISIONS).await?;
                        return Err(conflict(from, action, decided));
                    };
                    let suspended = to == ApplicationStatus::Suspended;
                    let change = StatusChange {
                        from,
                        to,
                        before: suspended.then_some(from),
                        suspend_reason: reason.as_deref(),
                    };
                    if !applications::set_status(tx, row.id, &change).await? {
                        return Err(conflict(from, action, None));
                    }
                    if action == StatusAction::Approve {
                        applications::set_activated(tx, row.id, now).await?;
                    }
                    let subject = reference.to_string();
                    let change = Change::of(from.as_str(), to.as_str());
                    let change = change.because(reason.as_deref());
                    audit::insert_change(tx, now, &actor, audited(action), &subject, change)
                        .await?;
                    let row = applications::by_reference(tx, reference)
                        .await?
                        .ok_or(Refusal::NoSuchApplication)?;
                    let (_, prices) = service.inner.prices.read(tx, now).await?;
                    let blockers = blockers(&row.record, prices.base().local, true, None);
                    let record = &row.record;
                    let mail = texts::status_changed(record, action, reason.as_deref(), &blockers);
                    mail::put(tx, &row, &mail, now).await?;
                    let cause = Cause::Status(action, row.record.status, reason.as_deref());
                    cause.put(tx, row.id, now);
                    Ok(service.applications().shown(row))
                }),
            )
            .await?;
        if action == StatusAction::Reinstate {
            self.inner.wake(Wakeup::Reinstated);
        }
        Ok(changed)
    }

    /// Returns the application's record with the test balance of today.
    pub(crate) fn shown(&self, row: ApplicationRow) -> ApplicationRecord {
        let mut record = row.record;
        record.test_balance = test_money(record.test_balance, row.test_day, self.now());
        record
    }
}

/// Whether an application never sent a live message and has no balance.
async fn is_unused(conn: Conn<'_>, row: &ApplicationRow) -> Result<bool> {
    Ok(row.record.balance == Money::ZERO
        && tally::first_and_last(conn, row.id, false).await?.is_none()
        && batches::list(conn, row.id, false, i64::MAX, None, 1).await?.is_empty())
}

/// Returns the application if it belongs to the account. For an application of another account, the
/// refusal is the same as for one that doesn't exist.
pub(crate) async fn owned(
    conn: Conn<'_>,
    account_id: i64,
    reference: Reference,
) -> Result<ApplicationRow> {
    let row = applications::by_reference(conn, reference).await?;
    let row = row.filter(|row| row.account_id == account_id);
    row.ok_or(Error::Refused(Refusal::NoSuchApplication))
}

/// Returns the account's application with this reference, or all of the account's applications for
/// `None`.
pub(crate) async fn chosen(
    conn: Conn<'_>,
    account_id: i64,
    reference: Option<Reference>,
) -> Result<Vec<ApplicationIds>> {
    let mut owned = applications::ids_by_account(conn, account_id).await?;
    if let Some(wanted) = reference {
        owned.retain(|owned| owned.reference == wanted);
        if owned.is_empty() {
            return Err(Refusal::NoSuchApplication.into());
        }
    }
    Ok(owned)
}

/// Returns the IDs of the applications that [`chosen`] returns.
pub(crate) async fn owned_ids(
    conn: Conn<'_>,
    account_id: i64,
    reference: Option<Reference>,
) -> Result<Vec<ApplicationId>> {
    let chosen = chosen(conn, account_id, reference).await?;
    Ok(chosen.into_iter().map(|owned| owned.id).collect())
}

/// Refuses a sender name that belongs to another account.
pub(crate) async fn refuse_taken(conn: Conn<'_>, name: &SenderName, account_id: i64) -> Result<()> {
    match senders::owner(conn, &name.folded()).await? {
        Some(owner) if owner != account_id => Err(Refusal::SenderNameTaken.into()),
        _ => Ok(()),
    }
}

/// The audit actions that change an application's status.
const DECISIONS: [&str; 3] = [
    audited(StatusAction::Approve),
    audited(StatusAction::Suspend),
    audited(StatusAction::Reinstate),
];

fn conflict(status: ApplicationStatus, action: StatusAction, decided: Option<Decided>) -> Error {
    let refusal = Refusal::StatusConflict { status, action, decided };
    refusal.into()
}

const fn audited(action: StatusAction) -> &'static str {
    match action {
        StatusAction::Approve => "application.approve",
        StatusAction::Suspend => "application.suspend",
        StatusAction::Reinstate => "application.reinstate",
    }
}
