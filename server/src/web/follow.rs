//! A batch's changes as server-sent events, for the page that is open.
//!
//! The portal's limit on time is on the beginning of an answer; this one goes on.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use app::problem::Problem;
use app::reports::LiveBatch;
use app::visit::Visitor as _;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
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

/// Who follows a batch now.
#[derive(Clone)]
pub struct Followers {
    open: Arc<Mutex<HashMap<i64, usize>>>,
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

    /// A place among an account's, or `None` when all are taken.
    fn enter(&self, account_id: i64) -> Option<Place> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(account_id).or_default();
        if *count == PER_ACCOUNT_MAX {
            return None;
        }
        *count += 1;
        Some(Place {
            followers: self.clone(),
            account_id,
        })
    }
}

/// Held while an answer goes on.
struct Place {
    followers: Followers,
    account_id: i64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self
            .followers
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.account_id) {
            *count -= 1;
            if *count == 0 {
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
    let Some(place) = portal.followers.enter(account.id) else {
        let words = "Too many pages follow batches. Close some of them and reload this one.";
        return Ok((StatusCode::TOO_MANY_REQUESTS, words).into_response());
    };
    let following = Following {
        service: portal.service,
        currency: portal.site.currency.clone(),
        token,
        place,
        batch,
    };
    let heartbeat = KeepAlive::new().interval(HEARTBEAT);
    Ok(Sse::new(following.events())
        .keep_alive(heartbeat)
        .into_response())
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
        let stop = self.place.followers.stop.clone();
        unfold(Some((self, true)), move |state| {
            let stop = stop.clone();
            async move {
                let (mut following, first) = state?;
                if !first {
                    tokio::select! {
                        () = stop.cancelled() => return None,
                        changed = following.change() => changed?,
                    }
                }
                let live = LiveBatch::of(&following.batch, &following.currency);
                let event = serde_json::to_string(&live).ok()?;
                let next = live.open.then_some((following, false));
                Some((Ok(Event::default().data(event)), next))
            }
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
