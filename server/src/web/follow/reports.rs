//! Changes of an account's messages that are under way.

use std::time::Duration;

use app::reports::{ReportFilter, is_under_way, open_counts};
use axum::extract::{Query, Request, State};
use axum::response::Response;
use domain::records::{AccountRecord, StatusCounts};
use domain::{KeyKind, Reference, Refusal, Zone};
use service::Service;

use super::{Subject, answer};
use crate::web::csv::value_of;
use crate::web::portal_request::Portal;

/// The messages of an account.
struct Messages {
    account_id: i64,
    reference: Option<Reference>,
    key: Option<KeyKind>,
}

impl Subject for Messages {
    type State = StatusCounts;
    /// The page reloads its lists with each change.
    const READ_EVERY: Duration = Duration::from_secs(2);

    fn is_open_to(&self, account: &AccountRecord) -> bool {
        account.id == self.account_id
    }

    async fn read(&self, service: &Service) -> service::Result<Option<StatusCounts>> {
        let counts = open_counts(service, self.account_id, self.reference, self.key).await;
        match counts {
            Ok(counts) => Ok(Some(counts)),
            Err(error) if error.refusal() == Some(&Refusal::NoSuchApplication) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn event(&self, counts: &StatusCounts) -> serde_json::Result<(String, bool)> {
        Ok((serde_json::to_string(counts)?, is_under_way(counts)))
    }
}

/// `GET /reports/events`: the counts of the messages that can still change, and then each change
/// until all of them are final.
pub async fn events(State(portal): State<Portal>, request: Request) -> Response {
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(request.uri());
    let messages = |account: &AccountRecord| {
        let Query(pairs) = pairs.ok()?;
        let filter = ReportFilter::read(|name| value_of(&pairs, name));
        let (reference, wanted) = filter.parse(0, &Zone::default()).ok()?;
        Some(Messages { account_id: account.id, reference, key: wanted.key })
    };
    answer(portal, request, messages, "There is no such application.").await
}
