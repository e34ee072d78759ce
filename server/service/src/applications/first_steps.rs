//! A new customer's progress towards the first message.

use domain::Category;
use domain::first_steps::{Progress, Step, StepState, first_steps};

use crate::Applications;
use store::error::Result;
use store::{applications, tally};

impl Applications<'_> {
    /// Returns the first steps of an account, judged by its SMS application. Returns no steps once
    /// that application has sent a message.
    pub async fn first_steps(&self, account_id: i64) -> Result<Vec<(Step, StepState)>> {
        let is_confirmed = !self.accounts().must_confirm(account_id).await?;
        let shard = self.shard_of_account(account_id).await?;
        let mut conn = self.store().read_at(shard).await?;
        let rows = applications::by_account(&mut conn, account_id).await?;
        let row = (rows.iter()).find(|row| row.record.category == Category::Sms);
        let (mut has_tried, mut has_sent) = (false, false);
        if let Some(row) = row {
            let days = tally::first_and_last(&mut conn, row.id, true).await?;
            has_tried = days.is_some();
            let days = tally::first_and_last(&mut conn, row.id, false).await?;
            has_sent = days.is_some();
        }
        Ok(first_steps(Progress {
            is_confirmed,
            application: row.map(|row| &row.record),
            has_tried,
            has_sent,
        }))
    }
}
