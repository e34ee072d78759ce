//! Sends changes to open pages, as server-sent events.
//!
//! The portal's time limit applies only until a response begins. These responses continue after
//! that.

pub mod followers;
pub mod subjects;

use std::convert::Infallible;
use std::time::Duration;

use app::portal_request::PortalRequest as _;
use app::problem::Cause;
use axum::extract::FromRequestParts;
use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::http::request::Parts;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use domain::records::AccountRecord;
use futures_util::stream::unfold;
use serde::Serialize;
use service::Service;

use super::portal_request::Portal;
use super::signed_in::{Refused, SignedIn};

/// The time without an event after which a comment is sent. Proxies end a connection that is silent
/// for a minute. Without writes, the server also wouldn't notice that a client has left.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long a page waits before it reconnects, after the server has ended its response.
const BACK_AFTER: Duration = Duration::from_secs(5);

/// A session with an open page that follows changes. A browser reconnects whenever the events end,
/// except after a refusal.
pub struct Follower {
    portal: Portal,
    signed_in: SignedIn,
    token: String,
}

impl FromRequestParts<Portal> for Follower {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, portal: &Portal) -> Result<Self, Refused> {
        // A request for events isn't redirected to the sign-in page.
        let signed_in = SignedIn::of(parts, portal).await?.ok_or(Cause::SignedOut)?;
        let token = signed_in.current.token().ok_or(Cause::SignedOut)?;
        Ok(Self { portal: portal.clone(), signed_in, token })
    }
}

impl Follower {
    fn parameter(&self, name: &str) -> Option<String> {
        self.signed_in.parameter(name)
    }

    /// Responds with the current state and then each change. The events end when no more change can
    /// follow, when the session ends, and when the follower has to end.
    ///
    /// `read` returns the state and whether another one may follow. It returns `None` if the state
    /// doesn't exist or the account may not see it. It is called at this interval, each time with
    /// the current account, because an account can lose its role.
    async fn follow<T, F>(
        self,
        interval: Duration,
        read: impl Fn(Service, AccountRecord) -> F + Send + Sync + 'static,
    ) -> Result<Response, Refused>
    where
        T: Serialize + Send + 'static,
        F: Future<Output = service::Result<Option<(T, bool)>>> + Send + 'static,
    {
        let Self { portal: Portal { service, followers, .. }, signed_in, token } = self;
        let account = signed_in.account;
        let account_id = account.id;
        let found = read(service.clone(), account).await?.ok_or(Cause::NotFound)?;
        let entry = followers.enter(account_id);
        let state = Some((found, String::new(), service, token, entry, read));
        let events = unfold(state, move |state| async move {
            let (mut found, mut sent, service, token, entry, read) = state?;
            loop {
                let text = serde_json::to_string(&found.0).ok()?;
                if text != sent {
                    sent = text;
                    let event = Ok::<_, Infallible>(Event::default().data(&sent));
                    let rest = found.1.then_some((found, sent, service, token, entry, read));
                    return Some((event, rest));
                }
                tokio::select! {
                    () = entry.end.cancelled() => {
                        return Some((Ok(Event::default().retry(BACK_AFTER)), None));
                    }
                    () = tokio::time::sleep(interval) => {}
                }
                let again = async {
                    match account_of(&service, &token).await? {
                        Some(account) => read(service.clone(), account).await,
                        None => Ok(None),
                    }
                };
                found = again.await.unwrap_or_else(|error| {
                    let error = error.for_operator();
                    tracing::error!(%error, "an open page can't be kept up to date");
                    None
                })?;
            }
        });
        let events = Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT));
        let mut response = events.into_response();
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // Without this header, nginx buffers events.
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        Ok(response)
    }
}

/// Returns the account of a session, unless it has to set up a second factor.
async fn account_of(service: &Service, token: &str) -> service::Result<Option<AccountRecord>> {
    let accounts = service.accounts();
    let account = accounts.session_follower(token).await?;
    Ok(account.filter(|account| !accounts.must_set_up_factor(account)))
}
