//! Sends changes to open pages, as server-sent events.
//!
//! The portal's time limit applies only until a response begins. These responses continue after
//! that.

pub mod batch;
pub mod carriers;
pub mod first_steps;
pub mod followers;
pub mod reports;

use std::convert::Infallible;
use std::time::Duration;

use app::portal_request::PortalRequest as _;
use app::problem::Problem;
use axum::extract::Request;
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderValue, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use domain::records::AccountRecord;
use futures_util::Stream;
use futures_util::stream::unfold;
use service::Service;

use super::portal_request::{Portal, ServedRequest};
use followers::Entry;

/// The time without an event after which a comment is sent. Proxies end a connection that is silent
/// for a minute. Without writes, the server also wouldn't notice that a client has left.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long a page waits before it reconnects, after the server has ended its response.
const BACK_AFTER: Duration = Duration::from_secs(5);

/// The data that an open page follows, such as a batch.
trait Subject: Send + Sync + 'static {
    /// The state of the subject.
    type State: PartialEq + Send + Sync;
    /// The interval between two reads.
    const READ_EVERY: Duration;

    /// Whether this account may follow the subject. Checked before each read, because an account
    /// can lose its role.
    fn is_open_to(&self, account: &AccountRecord) -> bool;

    /// Reads the state. Returns `None` if the subject no longer exists.
    fn read(
        &self,
        service: &Service,
    ) -> impl Future<Output = service::Result<Option<Self::State>>> + Send;

    /// Returns the event for a state, in JSON, and whether another state may follow.
    fn event(&self, state: &Self::State) -> serde_json::Result<(String, bool)>;
}

/// Responds with the changes of a subject. `find` returns the subject for the account, and
/// `missing` is the sentence to send if there is none. A browser reconnects whenever the events
/// end, except after a refusal.
async fn answer<S: Subject>(
    portal: Portal,
    request: Request,
    find: impl FnOnce(&AccountRecord) -> Option<S> + Send,
    missing: &'static str,
) -> Response {
    let (parts, _) = request.into_parts();
    let current = ServedRequest::new(portal.clone(), &parts);
    let followed = follow(portal, &current, find, missing).await;
    followed.unwrap_or_else(|problem| {
        let sentence = problem.sentence().into_owned();
        (StatusCode::INTERNAL_SERVER_ERROR, sentence).into_response()
    })
}

async fn follow<S: Subject>(
    portal: Portal,
    current: &ServedRequest,
    find: impl FnOnce(&AccountRecord) -> Option<S> + Send,
    missing: &'static str,
) -> Result<Response, Problem> {
    let (Some(account), Some(token)) = (current.account().await?, current.token()) else {
        return Ok((StatusCode::UNAUTHORIZED, "Sign in again.").into_response());
    };
    let not_found = (StatusCode::NOT_FOUND, missing);
    let found = find(&account).filter(|subject| subject.is_open_to(&account));
    let Some(subject) = found else {
        return Ok(not_found.into_response());
    };
    let Some(state) = subject.read(&portal.service).await? else {
        return Ok(not_found.into_response());
    };
    let following = Following {
        entry: portal.followers.enter(account.id),
        service: portal.service,
        token,
        subject,
        state,
    };
    let events = Sse::new(following.events()).keep_alive(KeepAlive::new().interval(HEARTBEAT));
    let mut response = events.into_response();
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Without this header, nginx buffers events.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// A subject that an open page follows.
struct Following<S: Subject> {
    service: Service,
    token: String,
    entry: Entry,
    subject: S,
    /// The last state that was sent.
    state: S::State,
}

impl<S: Subject> Following<S> {
    /// Returns the state that was just read, and then each change. The events end when no more
    /// change can follow, when the session ends, and when `entry.end` is cancelled.
    fn events(self) -> impl Stream<Item = Result<Event, Infallible>> {
        unfold(Some((self, true)), |state| async move {
            let (mut following, first) = state?;
            if !first {
                let end = following.entry.end.clone();
                tokio::select! {
                    () = end.cancelled() => {
                        return Some((Ok(Event::default().retry(BACK_AFTER)), None));
                    }
                    changed = following.change() => changed?,
                }
            }
            let (text, more) = following.subject.event(&following.state).ok()?;
            let next = more.then_some((following, false));
            Some((Ok(Event::default().data(text)), next))
        })
    }

    /// Waits for a change. Returns `None` if no more changes may be sent.
    async fn change(&mut self) -> Option<()> {
        loop {
            tokio::time::sleep(S::READ_EVERY).await;
            match self.read().await {
                Ok(Some(state)) if state == self.state => {}
                Ok(Some(state)) => {
                    self.state = state;
                    return Some(());
                }
                Ok(None) => return None,
                Err(error) => {
                    let error = error.for_operator();
                    tracing::error!(%error, "an open page can't be kept up to date");
                    return None;
                }
            }
        }
    }

    /// Reads the state. Returns `None` if the session has ended or the account has lost its access.
    async fn read(&self) -> service::Result<Option<S::State>> {
        let account = self.service.accounts().session_follower(&self.token).await?;
        let open = account.is_some_and(|account| {
            self.subject.is_open_to(&account)
                && !self.service.accounts().must_set_up_factor(&account)
        });
        if open { self.subject.read(&self.service).await } else { Ok(None) }
    }
}
