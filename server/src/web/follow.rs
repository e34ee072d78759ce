//! A batch's changes as server-sent events, for the page that is open.
//!
//! The portal's limit on time is on the beginning of an answer; this one goes on.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use app::problem::Problem;
use app::reports::LiveBatch;
use app::visit::Visitor as _;
use axum::extract::{Path, Request, State};
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderValue, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use domain::BatchId;
use domain::records::BatchRecord;
use futures_util::Stream;
use futures_util::stream::unfold;
use service::Service;
use tokio_util::sync::CancellationToken;

use super::Portal;
use super::visit::PortalVisit;

/// Pause between two looks at a batch.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Silence after which a comment is sent: proxies end what is silent for a minute, and only by writing is
/// it noticed that the client has left.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Pages of one account that follow a batch at a time. A browser has six connections to a server, and
/// each page holds one.
const PER_ACCOUNT_MAX: usize = 4;
/// When a page that was cut off may come back.
const BACK_AFTER: Duration = Duration::from_secs(5);

/// Who follows a batch now.
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

    /// One more of an account. Where there are too many the oldest ends: its page may have been left
    /// without a word, and comes back if not.
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

/// `GET /reports/{batchid}/events`: how the batch stands, and then each change until it is done.
pub async fn batch(
    State(portal): State<Portal>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let visit = PortalVisit::new(portal.clone(), &parts);
    match follow(portal, &visit, &id).await {
        Ok(response) => response,
        Err(problem) => {
            let words = problem.cause.sentence().into_owned();
            (StatusCode::INTERNAL_SERVER_ERROR, words).into_response()
        }
    }
}

async fn follow(portal: Portal, visit: &PortalVisit, id: &str) -> Result<Response, Problem> {
    // A browser asks again after any end but a refusal.
    let (Some(account), Some(token)) = (visit.account().await?, visit.token()) else {
        return Ok((StatusCode::UNAUTHORIZED, "Sign in again.").into_response());
    };
    let found = match BatchId::parse(id) {
        Some(batchid) => portal.service.account_batch(account.id, batchid).await?,
        None => None,
    };
    let Some(batch) = found else {
        return Ok((StatusCode::NOT_FOUND, "There is no such batch.").into_response());
    };
    let following = Following {
        place: portal.followers.enter(account.id),
        service: portal.service,
        currency: portal.site.currency.clone(),
        token,
        batch,
    };
    let events = Sse::new(following.events()).keep_alive(KeepAlive::new().interval(HEARTBEAT));
    let mut response = events.into_response();
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // nginx would otherwise gather events before it passes them on.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// A batch that is being followed.
struct Following {
    service: Service,
    currency: String,
    token: String,
    place: Place,
    /// As it was told last.
    batch: BatchRecord,
}

impl Following {
    /// What has just been read, then each change; ends with the batch, the session, or the server.
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
            let live = LiveBatch::of(&following.batch, &following.currency);
            let event = serde_json::to_string(&live).ok()?;
            let next = live.open.then_some((following, false));
            Some((Ok(Event::default().data(event)), next))
        })
    }

    /// Waits for a change; `None` when there will be none that may be told.
    async fn change(&mut self) -> Option<()> {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            match self.look().await {
                Ok(Some(batch)) if batch == self.batch => {}
                Ok(Some(batch)) => {
                    self.batch = batch;
                    return Some(());
                }
                Ok(None) => return None,
                Err(error) => {
                    tracing::error!(error = %error.for_operator(), "a batch can't be followed");
                    return None;
                }
            }
        }
    }

    async fn look(&self) -> service::Result<Option<BatchRecord>> {
        if !self.service.session_holds(&self.token).await? {
            return Ok(None);
        }
        let batchid = self.batch.batchid;
        self.service
            .account_batch(self.place.account_id, batchid)
            .await
    }
}
