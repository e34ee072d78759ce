//! The list of batches on the reports page.

use domain::records::{BatchRecord, BatchStatus, Paged};
use leptos::prelude::*;

use super::messages::scheduled_for;
use super::progress::progress;
use super::{grouped, price};
use crate::reports::{REPORTS_PATH, ReportFilter};
use crate::ui::{StateMark, Table, in_zone, pager};
#[cfg(feature = "ssr")]
use {
    crate::problem::{Cause, Problem},
    crate::ui::last,
    domain::{BatchId, MessageStatus, Reference, Refusal, Timestamp, ids},
    service::{BatchFilter, MessageFilter, Service},
};

/// The number of batches on a page.
#[cfg(feature = "ssr")]
const BATCHES: i64 = 5;

/// Returns a page of the batches that match the filters, newest first. Returns `None` if a filter
/// applies only to messages. The rows of a scheduled batch aren't messages yet, so the filter for
/// scheduled messages also finds the batch.
#[cfg(feature = "ssr")]
pub async fn find(
    service: &Service,
    account_id: i64,
    reference: Option<Reference>,
    filter: &ReportFilter,
    wanted: &MessageFilter,
) -> Result<Option<Paged<BatchRecord>>, Problem> {
    let scheduled = wanted.status == Some(MessageStatus::Scheduled);
    let has_status = wanted.status.is_some() && !scheduled;
    if has_status || wanted.number.is_some() || wanted.transid.is_some() {
        return Ok(None);
    }
    let (from, below) = bounds(filter, wanted)?;
    let query = BatchFilter {
        requestid: wanted.requestid.clone(),
        key: wanted.key,
        scheduled,
        limit: BATCHES,
        cursor: below.map(|id| id.to_string()),
    };
    let mut found = service.messages().account_batches(account_id, reference, &query).await?;
    let newer = found.items.len();
    found.items.retain(|batch| batch.batchid >= from);
    if found.items.len() < newer {
        found.next = None;
    }
    Ok(Some(found))
}

/// Returns the lowest ID that a matching batch can have, and an upper limit, which is exclusive. An
/// ID begins with its time, so these IDs also limit the time.
#[cfg(feature = "ssr")]
fn bounds(
    filter: &ReportFilter,
    wanted: &MessageFilter,
) -> Result<(BatchId, Option<BatchId>), Problem> {
    let cursor = match last(&filter.batches) {
        None => None,
        Some(text) => Some(BatchId::parse(text).ok_or(Cause::Refused(Refusal::InvalidCursor))?),
    };
    let to = wanted.to.map(first_id);
    let only = wanted.batchid;
    let after = only.map(|id| BatchId(id.0.saturating_add(1)));
    let from = wanted.from.map(first_id).max(only);
    let below = [cursor, to, after].into_iter().flatten().min();
    Ok((from.unwrap_or(BatchId(0)), below))
}

/// Returns the smallest ID that can be generated at a time.
#[cfg(feature = "ssr")]
fn first_id(time: Timestamp) -> BatchId {
    let (least, greatest) = (ids::id_unix_ms(0), ids::id_unix_ms(i64::MAX));
    BatchId(ids::compose_id(time.unix_ms().clamp(least, greatest), 0))
}

/// Renders the list of batches, or a sentence that says that there are none.
pub fn batches_section(
    batches: &Paged<BatchRecord>,
    filter: &ReportFilter,
    currency: &str,
) -> impl IntoView + use<> {
    let next = batches.next.as_deref();
    let pager = pager("batches", &filter.batches, next, |way| {
        let address = filter.page_at("batches", way);
        format!("{address}#batches")
    });
    let nothing = if filter.is_empty() {
        view! {
            "No file was uploaded yet. One call sends up to a million messages: "
            <a href="/docs" rel="external">"the API reference"</a>
            " shows how."
        }
        .into_any()
    } else {
        view! {
            "No batch fits these filters. Remove one of them above, or "
            <a href=REPORTS_PATH>"show all batches"</a>
            "."
        }
        .into_any()
    };
    let is_of_scheduled = filter.status == BatchStatus::Scheduled.as_str();
    let rows = is_of_scheduled.then(|| {
        view! {
            <p class="fine">
                "The rows of these batches become messages at the time of the batch, and count as \
                 messages of that day."
            </p>
        }
    });
    view! {
        <h2 id="batches">"Batches"</h2>
        {rows}
        {listed(&batches.items, currency, nothing)}
        {pager}
    }
}

fn listed(batches: &[BatchRecord], currency: &str, nothing: AnyView) -> AnyView {
    Table::wide(batches)
        .compact()
        .with_links()
        .time(in_zone("Time (UTC)"), |batch| batch.created_at)
        .styled("key", "Batch ID", |batch| {
            let batchid = batch.batchid.to_string();
            let href = format!("/reports/{batchid}");
            view! {
                <span>
                    <a class="row-link" href=href>{batchid}</a>
                    {batch.test.then(|| view! { " " <span class="tag">"test"</span> })}
                </span>
            }
        })
        .styled("requestid", "Request ID", |batch| batch.requestid.clone())
        .column("Status", |batch| {
            let waits = batch.send_at.filter(|_| batch.status == BatchStatus::Scheduled);
            view! {
                <StateMark state=batch.status/>
                {waits.map(scheduled_for)}
            }
        })
        .column("Progress", progress)
        .amount("Rows", |batch| grouped(batch.rows))
        .money("Cost", currency, |batch| price(batch.paid(), batch.test))
        .in_region_or("Uploaded batches", nothing)
}
