//! Staff actions that need two people, if the settings require that: one requests the action, and
//! another one approves it.

use domain::Timestamp;
use domain::approval::{APPROVAL_DAYS, ApprovalRecord, StaffAct};
use domain::timestamp::DAY_MS;

use crate::accounts::staff::AccountChange;
use crate::money::statements::confirming_statement;
use crate::transactions::work;
use crate::{Support, Verb, run_detached};
use store::Tx;
use store::approvals;
use store::audit::{self, Actor};
use store::error::{Refusal, Result};

impl Support<'_> {
    /// Performs an act of a staff member and returns true. If the settings require two people,
    /// stores a request for approval instead and returns false.
    ///
    /// # Errors
    /// The errors of the act itself.
    pub async fn act(&self, account_id: i64, act: StaffAct) -> Result<bool> {
        let verb = self.verb_of(account_id, None, act.clone()).await?;
        if !self.limits().four_eyes {
            self.in_transaction(verb).await?;
            return Ok(true);
        }
        self.rehearse(verb).await?;
        let actor = Actor::Account(account_id);
        self.in_transaction(work!(|tx, now| {
            approvals::delete_until(tx, now.plus_ms(-APPROVAL_DAYS * DAY_MS)).await?;
            approvals::insert(tx, &act, account_id, now).await?;
            audit::insert(tx, now, &actor, "approval.ask", &act.to_string(), None).await
        }))
        .await?;
        Ok(false)
    }

    /// Runs a verb and rolls it back, so that an impossible act is refused when it is requested.
    async fn rehearse(&self, verb: Verb<()>) -> Result<()> {
        let service = self.0.clone();
        run_detached(async move {
            let mut tx = service.store().begin().await?;
            verb(&mut tx, service.now()).await
        })
        .await
    }

    /// Returns the requests that wait for a second staff member, oldest first.
    pub async fn approvals(&self) -> Result<Vec<ApprovalRecord>> {
        let after = self.now().plus_ms(-APPROVAL_DAYS * DAY_MS);
        approvals::waiting(&mut self.store().read().await?, after).await
    }

    /// Performs the act that another staff member requested, and deletes the request, in one
    /// transaction.
    ///
    /// # Errors
    /// `NoSuchApproval`, `OwnRequest`, and the errors of the act itself.
    pub async fn approve_act(&self, account_id: i64, id: i64) -> Result<()> {
        let request = self.waiting_request(id).await?;
        let asked_by = request.asked_by;
        if asked_by == account_id {
            return Err(Refusal::OwnRequest.into());
        }
        let verb = self.verb_of(account_id, Some(asked_by), request.act.clone());
        let verb = verb.await?;
        self.in_transaction(work!(|tx, now| {
            end(tx, now, account_id, &request, "approval.approve").await?;
            verb(tx, now).await
        }))
        .await
    }

    /// Deletes a request without performing it. The staff member who made the request may decline
    /// it too.
    ///
    /// # Errors
    /// `NoSuchApproval`.
    pub async fn decline_act(&self, account_id: i64, id: i64) -> Result<()> {
        let request = self.waiting_request(id).await?;
        self.in_transaction(work!(
            |tx, now| end(tx, now, account_id, &request, "approval.decline").await
        ))
        .await
    }

    async fn waiting_request(&self, id: i64) -> Result<ApprovalRecord> {
        let found = self.approvals().await?.into_iter().find(|one| one.id == id);
        Ok(found.ok_or(Refusal::NoSuchApproval)?)
    }

    /// Returns the [`Verb`] that performs an act. `account` performs or approves the act.
    /// `asked_by` is the account that requested it, if it needs an approval.
    async fn verb_of(
        &self,
        account: i64,
        asked_by: Option<i64>,
        act: StaffAct,
    ) -> Result<Verb<()>> {
        let actor = Actor::Account(account);
        Ok(match act {
            StaffAct::AssignDeposit { bank_id, reference } => {
                discarding(self.money().assigning_deposit(actor, &bank_id, reference).await?)
            }
            StaffAct::ReturnDeposit { bank_id, note } => {
                self.money().returning_deposit(actor, &bank_id, &note)?
            }
            StaffAct::ConfirmStatement { id } => confirming_statement(actor, asked_by, id),
            StaffAct::SetPrice { change, from } => {
                discarding(self.money().setting_price(actor, change, from).await?)
            }
            StaffAct::ResetFactor { email } => {
                self.accounts()
                    .changing_account(actor, &email, AccountChange::ResetFactor, None)
                    .await?
            }
            StaffAct::Promote { email } => {
                self.accounts()
                    .changing_account(actor, &email, AccountChange::Promote, None)
                    .await?
            }
        })
    }
}

/// Returns a verb that discards its result.
fn discarding<T: Send + 'static>(verb: Verb<T>) -> Verb<()> {
    Box::new(work!(|tx, now| verb(tx, now).await.map(drop)))
}

/// Deletes a request, and records in the audit log who decided it.
async fn end(
    tx: &mut Tx<'_>,
    now: Timestamp,
    account_id: i64,
    request: &ApprovalRecord,
    action: &'static str,
) -> Result<()> {
    if !approvals::delete(tx, request.id).await? {
        return Err(Refusal::NoSuchApproval.into());
    }
    let asked_by = format!("requested by {}", request.email);
    let (actor, subject) = (Actor::Account(account_id), request.act.to_string());
    audit::insert(tx, now, &actor, action, &subject, Some(&asked_by)).await
}
