//! The changes of the carriers, for staff.

use std::time::Duration;

use app::portal_request::PortalRequest as _;
use app::problem::Problem;
use app::support::CarriersNow;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use service::Service;

use super::{Subject, answer, failed, signed_out};
use crate::web::Portal;
use crate::web::portal_request::ServedRequest;

/// All carriers.
struct Carriers;

impl Subject for Carriers {
    type State = CarriersNow;
    /// Each read counts the waiting messages, which may be many.
    const READ_EVERY: Duration = Duration::from_secs(2);

    async fn read(&self, service: &Service) -> service::Result<Option<CarriersNow>> {
        Ok(Some(CarriersNow::read(service).await?))
    }

    fn event(&self, carriers: &CarriersNow) -> serde_json::Result<(String, bool)> {
        Ok((serde_json::to_string(carriers)?, true))
    }
}

/// `GET /support/carriers/events`: the carriers as they are, and then each change.
pub async fn events(State(portal): State<Portal>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let current = ServedRequest::new(portal.clone(), &parts);
    match follow(portal, &current).await {
        Ok(response) => response,
        Err(problem) => failed(&problem),
    }
}

async fn follow(portal: Portal, current: &ServedRequest) -> Result<Response, Problem> {
    let (Some(account), Some(token)) = (current.account().await?, current.token()) else {
        return Ok(signed_out());
    };
    let found = if account.staff {
        Carriers.read(&portal.service).await?
    } else {
        None
    };
    Ok(match found {
        Some(state) => answer(portal, (account.id, token), Carriers, state),
        None => (StatusCode::NOT_FOUND, "There is nothing here.").into_response(),
    })
}
