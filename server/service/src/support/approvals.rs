//! What takes two members of staff, where the settings say so: one asks, another one approves.

use domain::approval::{APPROVAL_DAYS, ApprovalRecord, StaffAct};
use domain::timestamp::DAY_MS;

use crate::Service;
use crate::error::{Refusal, Result};
use crate::store::applications;
use crate::store::approvals;
use crate::store::audit::{self, Actor};

impl Service {
    /// Does what a member of staff asks for, and returns true; or keeps it until a second one
    /// approves, and returns false.
    ///
    /// # Errors
    /// Those of the act itself where it is done; `OwnApplication`.
    pub async fn act(&self, account_id: i64, act: StaffAct) -> Result<bool> {
        let actor = Actor::Account(account_id);
        if !self.limits().four_eyes {
            self.perform(account_id, act).await?;
            return Ok(true);
        }
        let home = match &act {
            StaffAct::AssignDeposit { reference, .. } => {
                let home = self.find_home(*reference).await?;
                Some((*reference, home.ok_or(Refusal::NoSuchApplication)?))
            }
            _ => None,
        };
        let service = self.clone();
        self.in_transaction(move |tx, now| {
            Box::pin(async move {
                if let Some((reference, home)) = home {
                    tx.at(home);
                    let row = applications::by_reference(tx, reference).await?;
                    service.refuse_own(&actor, &row.ok_or(Refusal::NoSuchApplication)?)?;
                }
                approvals::delete_until(tx, now.plus_ms(-APPROVAL_DAYS * DAY_MS)).await?;
                approvals::insert(tx, &act, account_id, now).await?;
                audit::insert(tx, now, &actor, "approval.ask", &act.to_string(), None).await
            })
        })
        .await?;
        Ok(false)
    }

    /// What waits for a second member of staff, oldest first.
    ///
    /// # Errors
    /// `Failed` when the database can't be read.
    pub async fn approvals(&self) -> Result<Vec<ApprovalRecord>> {
        let after = self.now().plus_ms(-APPROVAL_DAYS * DAY_MS);
        let mut conn = self.store().read().await?;
        approvals::waiting(&mut conn, after).await
    }

    /// Does what another member of staff asked for. What was done is no longer asked for; where that
    /// can't be written, it is asked for still, and doing it again is refused or changes nothing.
    ///
    /// # Errors
    /// `NoSuchApproval`, `OwnRequest`, and those of the act itself.
    pub async fn approve_act(&self, account_id: i64, id: i64) -> Result<()> {
        let found = self.approvals().await?.into_iter().find(|one| one.id == id);
        let request = found.ok_or(Refusal::NoSuchApproval)?;
        if request.asked_by == account_id {
            return Err(Refusal::OwnRequest.into());
        }
        let actor = Actor::Account(account_id);
        self.perform(account_id, request.act.clone()).await?;
        self.end_request(actor, request, "approval.approve").await
    }

    /// Ends a request without doing it; whoever asked may do so too.
    ///
    /// # Errors
    /// `NoSuchApproval`.
    pub async fn decline_act(&self, account_id: i64, id: i64) -> Result<()> {
        let found = self.approvals().await?.into_iter().find(|one| one.id == id);
        let request = found.ok_or(Refusal::NoSuchApproval)?;
        let actor = Actor::Account(account_id);
        self.end_request(actor, request, "approval.decline").await
    }

    async fn end_request(
        &self,
        actor: Actor,
        request: ApprovalRecord,
        action: &'static str,
    ) -> Result<()> {
        self.in_transaction(move |tx, now| {
            Box::pin(async move {
                if !approvals::delete(tx, request.id).await? {
                    return Err(Refusal::NoSuchApproval.into());
                }
                let asked_by = format!("asked by {}", request.email);
                let subject = request.act.to_string();
                audit::insert(tx, now, &actor, action, &subject, Some(&asked_by)).await
            })
        })
        .await
    }

    async fn perform(&self, account_id: i64, act: StaffAct) -> Result<()> {
        let actor = &Actor::Account(account_id);
        match act {
            StaffAct::AssignDeposit { bank_id, reference } => self
                .assign_deposit(actor, &bank_id, reference)
                .await
                .map(drop),
            StaffAct::ConfirmStatement { id } => self.confirm_statement(account_id, id).await,
            StaffAct::SetPrice { change, from } => {
                self.set_price(actor, change, from).await.map(drop)
            }
            StaffAct::ResetFactor { email } => self.reset_factor(actor, &email).await,
            StaffAct::Promote { email } => self.promote_account(actor, &email).await,
        }
    }
}
