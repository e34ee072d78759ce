//! Which notices the owner of an application gets by mail.

use domain::{Money, Reference};

use super::owned;
use crate::Applications;
use crate::transactions::work;
use store::audit::{self, Actor, Change};
use store::error::Result;
use store::notices;

impl Applications<'_> {
    /// Sets which notices the owner of an application gets: when the balance falls below
    /// `low_balance`, if set, and when a batch is done.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn set_notices(
        &self,
        account_id: i64,
        reference: Reference,
        low_balance: Option<Money>,
        batches: bool,
    ) -> Result<()> {
        self.in_transaction_of(
            reference,
            work!(|tx, now| {
                let row = owned(tx, account_id, reference).await?;
                let since = row.record.batch_mails_since.unwrap_or(now);
                notices::set(tx, row.id, low_balance, batches.then_some(since)).await?;
                let (actor, subject) = (Actor::Account(account_id), reference.to_string());
                let before = notices_in_words(
                    row.record.low_balance,
                    row.record.batch_mails_since.is_some(),
                );
                let after = notices_in_words(low_balance, batches);
                let change = Change::of(&before, &after);
                audit::insert_change(tx, now, &actor, "application.notices", &subject, change).await
            }),
        )
        .await
    }
}

/// Returns the notice settings as the audit log shows them.
fn notices_in_words(low_balance: Option<Money>, batches: bool) -> String {
    let low = low_balance.map_or_else(|| "none".to_owned(), Money::shown);
    let batches = if batches { "yes" } else { "no" };
    format!("low balance: {low}, batches: {batches}")
}
