//! The states that an open page can follow.

use std::time::Duration;

use app::applications::newest_inbound;
use app::problem::Cause;
use app::reports::{ReportFilter, is_under_way, open_counts};
use app::support::CarriersNow;
use axum::extract::Path;
use axum::response::Response;
use domain::{BatchId, Reference, Refusal, Zone};

use super::Follower;
use crate::web::signed_in::Refused;

/// The interval for a batch. Its page is watched while the batch is sent.
const OFTEN: Duration = Duration::from_millis(500);
/// The interval for states that take longer to read, and for pages that reload their lists.
const SELDOM: Duration = Duration::from_secs(2);

/// `GET /reports/{batchid}/events`: the current batch, and then each change until it is done.
pub async fn batch(Path(id): Path<String>, follower: Follower) -> Result<Response, Refused> {
    let batchid = BatchId::parse(&id).ok_or(Cause::NotFound)?;
    let events = follower.follow(OFTEN, move |service, account| async move {
        let found = service.messages().account_batch(account.id, batchid).await?;
        Ok(found.map(|(_, batch)| {
            let goes_on = batch.done_at.is_none();
            (batch, goes_on)
        }))
    });
    events.await
}

/// `GET /reports/events`: the counts of the messages that can still change, and then each change
/// until all of them are final.
pub async fn reports(follower: Follower) -> Result<Response, Refused> {
    let filter = ReportFilter::read(|name| follower.parameter(name));
    let parsed = filter.parse(0, &Zone::default());
    let (reference, filter) = parsed.map_err(|_| Cause::NotFound)?;
    let key = filter.key;
    let events = follower.follow(SELDOM, move |service, account| async move {
        match open_counts(&service, account.id, reference, key).await {
            Ok(counts) => Ok(Some((counts, is_under_way(&counts)))),
            Err(error) if error.refusal() == Some(&Refusal::NoSuchApplication) => Ok(None),
            Err(error) => Err(error),
        }
    });
    events.await
}

/// `GET /applications/events`: the account's current first steps, and then each change until all of
/// them are done.
pub async fn first_steps(follower: Follower) -> Result<Response, Refused> {
    let events = follower.follow(SELDOM, |service, account| async move {
        let steps = service.applications().first_steps(account.id).await?;
        let goes_on = !steps.is_empty();
        Ok(Some((steps, goes_on)))
    });
    events.await
}

/// `GET /applications/{reference}/inbound/events`: the ID of the newest inbound message of an
/// application, and then each change.
pub async fn inbound(
    Path(reference): Path<String>,
    follower: Follower,
) -> Result<Response, Refused> {
    let reference = Reference::parse(&reference).map_err(|_| Cause::NotFound)?;
    let events = follower.follow(SELDOM, move |service, account| async move {
        match newest_inbound(&service, account.id, reference).await {
            Ok(newest) => Ok(Some((newest, true))),
            Err(error) if error.refusal() == Some(&Refusal::NoSuchApplication) => Ok(None),
            Err(error) => Err(error),
        }
    });
    events.await
}

/// `GET /support/carriers/events`: the current carriers, and then each change, for staff.
pub async fn carriers(follower: Follower) -> Result<Response, Refused> {
    let events = follower.follow(SELDOM, |service, account| async move {
        if !account.staff {
            return Ok(None);
        }
        Ok(Some((CarriersNow::read(&service).await?, true)))
    });
    events.await
}
