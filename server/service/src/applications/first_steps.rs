//! A new customer's progress towards the first message.

use domain::Category;
use domain::first_steps::{Progress, Step, StepState, first_steps};
use domain::records::ApplicationRecord;

use crate::Applications;
use store::error::Result;
use store::{applications, tally};

impl Applications<'_> {
    /// Returns the first steps of an account, judged by its SMS application. Returns no steps once
    /// that application has sent a message.
    pub async fn first_steps(&self, account_id: i64) -> Result<Vec<(Step, StepState)>> {
        let applications = self.of_account(account_id).await?;
        self.first_steps_of(account_id, &applications).await
    }

    /// Like [`Self::first_steps`], for an account whose applications have been read.
    pub async fn first_steps_of(
        &self,
        account_id: i64,
        applications: &[ApplicationRecord],
    ) -> Result<Vec<(Step, StepState)>> {
        let application = applications.iter().find(|one| one.category == Category::Sms);
        let mut has_tried = false;
        if let Some(application) = application {
            let mut conn = self.read_of_account(account_id).await?;
            let owned = applications::ids_by_account(&mut conn, account_id).await?;
            let id = owned.iter().find(|one| one.reference == application.reference);
            if let Some(id) = id.map(|owned| owned.id) {
                if tally::first_and_last(&mut conn, id, false).await?.is_some() {
                    return Ok(Vec::new());
                }
                has_tried = tally::first_and_last(&mut conn, id, true).await?.is_some();
            }
        }
        let is_confirmed = !self.accounts().must_confirm(account_id).await?;
        let mut steps =
            first_steps(Progress { is_confirmed, application, has_tried, has_sent: false });
        // Nobody can confirm an email if no mail is sent.
        if !self.operations().sends_mail() {
            steps.retain(|(step, _)| *step != Step::ConfirmEmail);
        }
        Ok(steps)
    }
}
