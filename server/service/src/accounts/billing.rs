//! The customer's details on receipts and statements.

use domain::billing::BillingDetails;

use super::audit_owner;
use crate::Accounts;
use crate::transactions::work;
use store::audit::Change;
use store::billing;
use store::error::Result;

impl Accounts<'_> {
    /// Returns the details of an account, which are empty until its owner has given them.
    pub async fn billing_details(&self, account_id: i64) -> Result<BillingDetails> {
        billing::of_account(&mut self.store().read().await?, account_id).await
    }

    /// Sets the details of an account. They apply to all receipts and statements that are shown from
    /// now on.
    pub async fn set_billing_details(
        &self,
        account_id: i64,
        details: BillingDetails,
    ) -> Result<()> {
        self.in_transaction(work!(|tx, now| {
            let before = billing::of_account(tx, account_id).await?.lines().join(", ");
            billing::set(tx, account_id, &details).await?;
            let after = details.lines().join(", ");
            let change = Change::of(&before, &after);
            audit_owner(tx, now, account_id, "account.billing", change).await
        }))
        .await
    }
}
