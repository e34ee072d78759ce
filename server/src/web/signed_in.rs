//! Extractors for routes that are neither pages nor server functions, such as downloads. They
//! identify who sent the request.

use app::overload::RETRY_AFTER_S;
use app::portal_request::{PortalRequest as _, status_of};
use app::problem::{Cause, Problem};
use axum::extract::FromRequestParts;
use axum::http::header::RETRY_AFTER;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use domain::records::AccountRecord;
use url::form_urlencoded;

use super::portal_request::{Portal, ServedRequest};

/// A signed-in account and its request. The extractor redirects everybody else to the sign-in page,
/// which leads back here. An account without a required second factor goes to its set-up instead.
pub struct SignedIn {
    pub current: ServedRequest,
    pub account: AccountRecord,
    query: String,
}

impl SignedIn {
    pub async fn of(parts: &Parts, portal: &Portal) -> Result<Option<Self>, Refused> {
        let current = ServedRequest::new(portal.clone(), parts);
        let query = parts.uri.query().unwrap_or_default().to_owned();
        let account = current.account().await?;
        Ok(account.map(|account| Self { current, account, query }))
    }

    /// Returns the value of a parameter in the address.
    pub fn parameter(&self, name: &str) -> Option<String> {
        let mut pairs = form_urlencoded::parse(self.query.as_bytes());
        pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }
}

impl FromRequestParts<Portal> for SignedIn {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, portal: &Portal) -> Result<Self, Refused> {
        if let Some(signed_in) = Self::of(parts, portal).await? {
            return Ok(signed_in);
        }
        let page = match parts.uri.path_and_query() {
            // A browser doesn't send a file again after the sign-in, which therefore leads to the
            // page with the form instead.
            Some(page) if parts.method == Method::POST => {
                let path = page.path();
                path.strip_suffix("/file").unwrap_or(path)
            }
            Some(page) => page.as_str(),
            None => "",
        };
        let way_in = ServedRequest::new(portal.clone(), parts).way_in(page).await?;
        Err(Refused(Redirect::to(&way_in).into_response()))
    }
}

/// A signed-in member of staff. A customer gets 404, and the service records a security event.
pub struct Staff(pub SignedIn);

impl FromRequestParts<Portal> for Staff {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, portal: &Portal) -> Result<Self, Refused> {
        let signed_in = SignedIn::from_request_parts(parts, portal).await?;
        if signed_in.account.staff {
            return Ok(Self(signed_in));
        }
        let accounts = portal.service.accounts();
        accounts.record_denied(signed_in.account.id, parts.uri.path()).await?;
        Err(Cause::NotFound.into())
    }
}

/// The response to a request that isn't served: a status and a sentence, or a redirect.
pub struct Refused(Response);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        self.0
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        let status = status_of(&problem.cause);
        let mut response = (status, problem.sentence().into_owned()).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            let seconds = HeaderValue::from_static(RETRY_AFTER_S);
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        Self(response)
    }
}

impl From<Cause> for Refused {
    fn from(cause: Cause) -> Self {
        Problem::from(cause).into()
    }
}

impl From<service::Error> for Refused {
    fn from(error: service::Error) -> Self {
        Problem::from(error).into()
    }
}

impl From<csv::Error> for Refused {
    fn from(error: csv::Error) -> Self {
        tracing::error!(%error, "a CSV file can't be written");
        Cause::Failed.into()
    }
}

impl From<Response> for Refused {
    fn from(response: Response) -> Self {
        Self(response)
    }
}
