//! What the reports page shows: what its filters found.

use domain::records::{BatchRecord, MessageRecord, Paged, StatusCounts};
use domain::{Category, Reference};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::chart::Chart;
use super::filter::ReportFilter;
use crate::incidents::IncidentNote;
use crate::problem::Problem;
#[cfg(feature = "ssr")]
use {
    super::batches,
    super::chart::count,
    crate::incidents::incident_notes,
    crate::portal_request::{CurrentRequest, signed_in},
    domain::quarter::QuarterRange,
    domain::{KeyKind, Timestamp, Zone},
    service::{MessageFilter, Service},
};

/// Where the changes of an account's messages are sent, as server-sent events, with the filters
/// `application` and `key`; each is the [`StatusCounts`] of the messages that can change.
pub const REPORT_EVENTS_PATH: &str = "/reports/events";
/// How many messages one page has.
#[cfg(feature = "ssr")]
const MESSAGES: i64 = 50;
/// A message is final 48 hours and 10 minutes after its acceptance: those of today and of this many
/// days before can change.
#[cfg(feature = "ssr")]
const DAYS_OPEN: i64 = 3;

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reports {
    /// The account's applications, to choose from.
    pub applications: Vec<(Reference, Category)>,
    pub filter: ReportFilter,
    pub currency: String,
    /// The day that it is in the zone of the page, since 1970-01-01.
    pub today: i64,
    /// The messages and batches that the filters found, or why they can't be shown.
    pub found: Result<Found, Problem>,
    pub incidents: Vec<IncidentNote>,
}

/// The messages and batches that the filters found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    pub chart: Option<Chart>,
    pub batches: Option<Paged<BatchRecord>>,
    pub messages: Paged<MessageRecord>,
    /// How many messages fit the filters, where that is known.
    pub total: Option<i64>,
    /// The messages that can change.
    pub open: StatusCounts,
}

/// Messages and batches of the account, newest first, with the filters that chose them.
///
/// # Errors
/// When nobody is signed in, or the service fails.
#[server(prefix = "/fn", endpoint = "reports", input = GetUrl)]
pub async fn load_reports(#[server(default)] filter: ReportFilter) -> Result<Reports, Problem> {
    let (current, account) = signed_in().await?;
    let applications = current.service().applications(account.id).await?;
    let applications: Vec<_> = applications
        .into_iter()
        .map(|application| (application.reference, application.category))
        .collect();
    let zone = current.zone(current.browser_zone()).await;
    let found = find(&current, account.id, &applications, (&filter, &zone)).await;
    Ok(Reports {
        applications,
        filter,
        currency: current.site().currency.clone(),
        today: zone.day(current.service().clock().now()),
        found,
        incidents: incident_notes(current.service()).await?,
    })
}

#[cfg(feature = "ssr")]
async fn find(
    current: &CurrentRequest,
    account_id: i64,
    applications: &[(Reference, Category)],
    (filter, zone): (&ReportFilter, &Zone),
) -> Result<Found, Problem> {
    let service = current.service();
    let (reference, wanted) = filter.parse(MESSAGES, zone)?;
    let messages = service
        .account_messages(account_id, reference, &wanted)
        .await?;
    let total = total(service, account_id, (reference, &wanted), &messages).await?;
    let open = open_counts(service, account_id, reference, wanted.key).await?;
    // Further pages have messages alone.
    let (chart, batches) = if wanted.cursor.is_none() {
        let of = (reference, &wanted);
        (
            Chart::find(service, account_id, applications, (filter, zone), of).await?,
            batches::find(service, account_id, reference, filter, &wanted).await?,
        )
    } else {
        (None, None)
    };
    Ok(Found {
        chart,
        batches,
        messages,
        total,
        open,
    })
}

/// How many messages fit the filters: of all messages of a day, and of a batch, counts are kept.
#[cfg(feature = "ssr")]
async fn total(
    service: &Service,
    account_id: i64,
    (reference, wanted): (Option<Reference>, &MessageFilter),
    page: &Paged<MessageRecord>,
) -> Result<Option<i64>, Problem> {
    if wanted.cursor.is_none() && page.next.is_none() {
        return Ok(i64::try_from(page.items.len()).ok());
    }
    if wanted.number.is_some()
        || wanted.requestid.is_some()
        || wanted.transid.is_some()
        || wanted.batchid.is_some()
    {
        return Ok(None);
    }
    let is_midnight = |at: Option<Timestamp>| at.is_none_or(|at| at == Timestamp::of_day(at.day()));
    if is_midnight(wanted.from) && is_midnight(wanted.to) {
        let first = wanted.from.map_or(0, Timestamp::day);
        let last = wanted.to.map_or(i64::MAX, |to| to.plus_ms(-1).day());
        let counts = service.account_totals(account_id, reference, wanted.key, (first, last));
        let counts = counts.await?;
        return Ok(Some(match wanted.status {
            Some(status) => counts.get(status),
            None => counts.total(),
        }));
    }
    if wanted.status.is_some_and(|status| !status.is_final()) {
        return Ok(None);
    }
    let ranges = [QuarterRange {
        first: wanted.from.map_or(0, Timestamp::quarter),
        below: wanted.to.map_or(i64::MAX, Timestamp::quarter),
        ahead: 0,
        // All of them are one period.
        length: i64::MAX,
    }];
    let found = service.account_figures(account_id, reference, wanted.key, &ranges);
    let found = found.await?;
    let figures = found.iter().flat_map(|(_, periods)| periods.values());
    Ok(Some(
        figures.map(|figures| count(figures, wanted.status)).sum(),
    ))
}

/// The counts of an account's messages that can change, of one of its applications or of all of
/// them, sent with one kind of key or with both.
///
/// # Errors
/// When the application isn't the account's, or the service fails.
#[cfg(feature = "ssr")]
pub async fn open_counts(
    service: &Service,
    account_id: i64,
    reference: Option<Reference>,
    key: Option<KeyKind>,
) -> service::Result<StatusCounts> {
    let today = service.clock().now().day();
    let days = (today - DAYS_OPEN, today);
    service
        .account_totals(account_id, reference, key, days)
        .await
}

/// Whether some of these messages can still change.
#[must_use]
pub fn is_under_way(counts: &StatusCounts) -> bool {
    counts.completed() < counts.total()
}
