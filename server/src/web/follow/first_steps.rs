//! A new customer's progress on the way to the first message.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::Response;
use domain::first_steps::{Step, StepState};
use domain::records::AccountRecord;
use service::Service;

use super::{Subject, answer};
use crate::web::portal_request::Portal;

/// The first steps of an account.
struct FirstSteps {
    account_id: i64,
}

impl Subject for FirstSteps {
    type State = Vec<(Step, StepState)>;
    /// Customers look at the page right after their first call.
    const READ_EVERY: Duration = Duration::from_secs(2);

    fn is_open_to(&self, account: &AccountRecord) -> bool {
        account.id == self.account_id
    }

    async fn read(&self, service: &Service) -> service::Result<Option<Self::State>> {
        service.applications().first_steps(self.account_id).await.map(Some)
    }

    fn event(&self, steps: &Self::State) -> serde_json::Result<(String, bool)> {
        Ok((serde_json::to_string(steps)?, !steps.is_empty()))
    }
}

/// `GET /applications/events`: the account's current first steps, and then each change until all of
/// them are done.
pub async fn events(State(portal): State<Portal>, request: Request) -> Response {
    let of = |account: &AccountRecord| Some(FirstSteps { account_id: account.id });
    answer(portal, request, of, "There is no such account.").await
}
