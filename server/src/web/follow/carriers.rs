//! Changes of the carriers, for staff.

use std::time::Duration;

use app::support::CarriersNow;
use axum::extract::{Request, State};
use axum::response::Response;
use domain::records::AccountRecord;
use service::Service;

use super::{Subject, answer};
use crate::web::portal_request::Portal;

/// All carriers.
struct Carriers;

impl Subject for Carriers {
    type State = CarriersNow;
    /// Each read counts the waiting messages, and there may be many.
    const READ_EVERY: Duration = Duration::from_secs(2);

    fn is_open_to(&self, account: &AccountRecord) -> bool {
        account.staff
    }

    async fn read(&self, service: &Service) -> service::Result<Option<CarriersNow>> {
        Ok(Some(CarriersNow::read(service).await?))
    }

    fn event(&self, carriers: &CarriersNow) -> serde_json::Result<(String, bool)> {
        Ok((serde_json::to_string(carriers)?, true))
    }
}

/// `GET /support/carriers/events`: the current carriers, and then each change.
pub async fn events(State(portal): State<Portal>, request: Request) -> Response {
    let carriers = |_: &AccountRecord| Some(Carriers);
    answer(portal, request, carriers, "There is nothing here.").await
}
