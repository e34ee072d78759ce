//! Sends the changes of what an open page shows, as server-sent events.
//!
//! The portal's time limit is for the beginning of an answer; these answers go on after it.

pub mod batch;
pub mod carriers;

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use app::problem::Problem;
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderValue, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::Stream;
use futures_util::stream::unfold;
use service::Service;
use tokio_util::sync::CancellationToken;

use super::Portal;

/// After this time without an event a comment is sent: proxies end a connection that is silent for
/// a minute, and only a write shows that the client has left.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Most pages of one account that follow something at a time. A browser has six connections to a
/// server, and each of these pages holds one.
const PER_ACCOUNT_MAX: usize = 4;
/// How long a page waits before it asks again after its answer was ended.
const BACK_AFTER: Duration = Duration::from_secs(5);

/// The answers that go on now.
#[derive(Clone)]
pub struct Followers {
    /// The tokens that end them, by account, the oldest first.
    open: Arc<Mutex<HashMap<i64, VecDeque<CancellationToken>>>>,
    stop: CancellationToken,
}

impl Followers {
    /// No answer yet; all end when `stop` is cancelled.
    pub fn new(stop: CancellationToken) -> Self {
        Self {
            open: Arc::default(),
            stop,
        }
    }

    /// Adds an answer to an account. Where there are too many, the oldest ends: its page may be
    /// gone, and asks again if it isn't.
    fn enter(&self, account_id: i64) -> Entry {
        let end = self.stop.child_token();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = open.entry(account_id).or_default();
        ends.push_back(end.clone());
        if ends.len() > PER_ACCOUNT_MAX
            && let Some(oldest) = ends.pop_front()
        {
            oldest.cancel();
        }
        Entry {
            followers: self.clone(),
            account_id,
            end,
        }
    }
}

/// An answer's entry among the followers; dropped when the answer ends.
struct Entry {
    followers: Followers,
    account_id: i64,
    end: CancellationToken,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.end.cancel();
        let open = &self.followers.open;
        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ends) = open.get_mut(&self.account_id) {
            ends.retain(|end| !end.is_cancelled());
            if ends.is_empty() {
                open.remove(&self.account_id);
            }
        }
    }
}

/// What an open page follows.
trait Subject: Send + Sync + 'static {
    /// The subject's state.
    type State: PartialEq + Send + Sync;
    /// Pause between two reads.
    const READ_EVERY: Duration;

    /// Reads the state; `None` when the subject isn't there any more.
    fn read(
        &self,
        service: &Service,
    ) -> impl Future<Output = service::Result<Option<Self::State>>> + Send;

    /// The event of a state, in JSON, and whether another state may follow.
    fn event(&self, state: &Self::State) -> serde_json::Result<(String, bool)>;
}

/// The answer to an account that may follow a subject. `token` names the account's session, `state`
/// was just read.
fn answer<S: Subject>(
    portal: Portal,
    (account_id, token): (i64, String),
    subject: S,
    state: S::State,
) -> Response {
    let following = Following {
        entry: portal.followers.enter(account_id),
        service: portal.service,
        token,
        subject,
        state,
    };
    let events = Sse::new(following.events()).keep_alive(KeepAlive::new().interval(HEARTBEAT));
    let mut response = events.into_response();
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Without it nginx collects events before it passes them on.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

// After these refusals a browser doesn't ask again, as it does after any other end.

fn signed_out() -> Response {
    (StatusCode::UNAUTHORIZED, "Sign in again.").into_response()
}

fn failed(problem: &Problem) -> Response {
    let sentence = problem.cause.sentence().into_owned();
    (StatusCode::INTERNAL_SERVER_ERROR, sentence).into_response()
}

/// A subject that a page follows.
struct Following<S: Subject> {
    service: Service,
    token: String,
    entry: Entry,
    subject: S,
    /// The state that was sent last.
    state: S::State,
}

impl<S: Subject> Following<S> {
    /// The state that was just read, then each change. It ends with the subject, the session or the
    /// server.
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

    /// Waits for a change; `None` when no further change may be sent.
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

    async fn read(&self) -> service::Result<Option<S::State>> {
        if !self.service.session_holds(&self.token).await? {
            return Ok(None);
        }
        self.subject.read(&self.service).await
    }
}
