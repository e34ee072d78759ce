//! The carriers, for staff.

use std::time::Duration;

use app::portal_request::PortalRequest as _;
use app::problem::Problem;
use app::support::LiveCarriers;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use service::Service;

use super::{Subject, answer, broken, signed_out};
use crate::web::Portal;
use crate::web::portal_request::ServedRequest;

/// All carriers.
struct Carriers;

impl Subject for Carriers {
    type State = LiveCarriers;
    /// A look counts what waits, which may be much.
    const LOOK_EVERY: Duration = Duration::from_secs(2);

    async fn look(&self, service: &Service) -> service::Result<Option<LiveCarriers>> {
        let carriers = service.carriers().await?;
        Ok(Some(LiveCarriers::of(carriers, service.clock().now())))
    }

    fn tell(&self, live: &LiveCarriers) -> serde_json::Result<(String, bool)> {
        Ok((serde_json::to_string(live)?, true))
    }
}

/// `GET /support/carriers/events`: how the carriers are, and then each change.
pub async fn events(State(portal): State<Portal>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let current = ServedRequest::new(portal.clone(), &parts);
    match follow(portal, &current).await {
        Ok(response) => response,
        Err(problem) => broken(&problem),
    }
}

async fn follow(portal: Portal, current: &ServedRequest) -> Result<Response, Problem> {
    let (Some(account), Some(token)) = (current.account().await?, current.token()) else {
        return Ok(signed_out());
    };
    let found = if account.staff {
        Carriers.look(&portal.service).await?
    } else {
        None
    };
    Ok(match found {
        Some(state) => answer(portal, (account.id, token), Carriers, state),
        None => (StatusCode::NOT_FOUND, "There is nothing here.").into_response(),
    })
}
