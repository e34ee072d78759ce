//! Changes as server-sent events, for the page that is open.
//!
//! The portal's limit on time is on the beginning of an answer; this one goes on.

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

/// Silence after which a comment is sent: proxies end what is silent for a minute, and only by
/// writing is it noticed that the client has left.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Pages of one account that follow something at a time. A browser has six connections to a server,
/// and each page holds one.
const PER_ACCOUNT_MAX: usize = 4;
/// When a page that was cut off may come back.
const BACK_AFTER: Duration = Duration::from_secs(5);

/// Who follows something now.
#[derive(Clone)]
pub struct Followers {
    /// What ends each, by account, the oldest first.
    open: Arc<Mutex<HashMap<i64, VecDeque<CancellationToken>>>>,
    stop: CancellationToken,
}

impl Followers {
    /// None yet; all end when `stop` is cancelled.
    pub fn new(stop: CancellationToken) -> Self {
        Self {
            open: Arc::default(),
            stop,
        }
    }

    /// One more of an account. Where there are too many the oldest ends: its page may have been
    /// left without a word, and comes back if not.
    fn enter(&self, account_id: i64) -> Place {
        let end = self.stop.child_token();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = open.entry(account_id).or_default();
        ends.push_back(end.clone());
        if ends.len() > PER_ACCOUNT_MAX
            && let Some(oldest) = ends.pop_front()
        {
            oldest.cancel();
        }
        Place {
            followers: self.clone(),
            account_id,
            end,
        }
    }
}

/// Held while an answer goes on.
struct Place {
    followers: Followers,
    account_id: i64,
    end: CancellationToken,
}

impl Drop for Place {
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
    /// As it is read.
    type State: PartialEq + Send + Sync;
    /// Pause between two looks.
    const LOOK_EVERY: Duration;

    /// Reads it; `None` when it isn't there any more.
    fn look(
        &self,
        service: &Service,
    ) -> impl Future<Output = service::Result<Option<Self::State>>> + Send;

    /// What is told of it in JSON, and whether there will be more.
    fn tell(&self, state: &Self::State) -> serde_json::Result<(String, bool)>;
}

/// The answer to an account that may follow a subject. `token` names its session, `state` was just
/// read.
fn answer<S: Subject>(
    portal: Portal,
    (account_id, token): (i64, String),
    subject: S,
    state: S::State,
) -> Response {
    let following = Following {
        place: portal.followers.enter(account_id),
        service: portal.service,
        token,
        subject,
        state,
    };
    let events = Sse::new(following.events()).keep_alive(KeepAlive::new().interval(HEARTBEAT));
    let mut response = events.into_response();
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // nginx would otherwise gather events before it passes them on.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

// A browser asks again after any end but a refusal.

fn signed_out() -> Response {
    (StatusCode::UNAUTHORIZED, "Sign in again.").into_response()
}

fn broken(problem: &Problem) -> Response {
    let words = problem.cause.sentence().into_owned();
    (StatusCode::INTERNAL_SERVER_ERROR, words).into_response()
}

/// A subject that is being followed.
struct Following<S: Subject> {
    service: Service,
    token: String,
    place: Place,
    subject: S,
    /// As it was told last.
    state: S::State,
}

impl<S: Subject> Following<S> {
    /// What has just been read, then each change; ends with the subject, the session, or the
    /// server.
    fn events(self) -> impl Stream<Item = Result<Event, Infallible>> {
        unfold(Some((self, true)), |state| async move {
            let (mut following, first) = state?;
            if !first {
                let end = following.place.end.clone();
                tokio::select! {
                    () = end.cancelled() => {
                        return Some((Ok(Event::default().retry(BACK_AFTER)), None));
                    }
                    changed = following.change() => changed?,
                }
            }
            let (told, more) = following.subject.tell(&following.state).ok()?;
            let next = more.then_some((following, false));
            Some((Ok(Event::default().data(told)), next))
        })
    }

    /// Waits for a change; `None` when there will be none that may be told.
    async fn change(&mut self) -> Option<()> {
        loop {
            tokio::time::sleep(S::LOOK_EVERY).await;
            match self.look().await {
                Ok(Some(state)) if state == self.state => {}
                Ok(Some(state)) => {
                    self.state = state;
                    return Some(());
                }
                Ok(None) => return None,
                Err(error) => {
                    tracing::error!(error = %error.for_operator(), "a page can't follow any longer");
                    return None;
                }
            }
        }
    }

    async fn look(&self) -> service::Result<Option<S::State>> {
        if !self.service.session_holds(&self.token).await? {
            return Ok(None);
        }
        self.subject.look(&self.service).await
    }
}
