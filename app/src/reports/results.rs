//! The results that the reports page shows.

use domain::Reference;
use domain::records::{BatchRecord, MessageRecord, Paged, StatusCounts};
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
    domain::schedule::DAYS_AHEAD_MAX,
    domain::timestamp::DAY_MS,
    domain::{KeyKind, Timestamp, Zone},
    service::{MessageFilter, Service},
    std::ops::Range,
};

/// The path of the server-sent events with the changes of an account's messages. The filters
/// `application` and `key` apply. Each event is the [`StatusCounts`] of the messages that can still
/// change.
pub const REPORT_EVENTS_PATH: &str = "/reports/events";
/// The number of messages on a page.
#[cfg(feature = "ssr")]
const MESSAGES: i64 = 50;
/// The number of days before today whose messages can still change. A message is final 48 hours and
/// 10 minutes after its acceptance, or after the time that it was scheduled for.
#[cfg(feature = "ssr")]
const DAYS_OPEN: i64 = DAYS_AHEAD_MAX + 3;

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reports {
    /// The account's applications with their names, as options of the filter.
    pub applications: Vec<(Reference, String)>,
    pub filter: ReportFilter,
    pub currency: String,
    /// Today's date in the page's time zone, as days since 1970-01-01.
    pub today: i64,
    /// The messages and batches that match the filters, or why they can't be shown.
    pub found: Result<Found, Problem>,
    pub incidents: Vec<IncidentNote>,
}

/// The messages and batches that match the filters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    pub chart: Option<Chart>,
    pub batches: Option<Paged<BatchRecord>>,
    pub messages: Paged<MessageRecord>,
    /// The number of messages that match the filters, if known.
    pub total: Option<i64>,
    /// The number of messages that can still change, by status.
    pub open: StatusCounts,
}

/// Loads the account's messages and batches that match the filters, newest first.
#[server(prefix = "/fn", endpoint = "reports", input = GetUrl)]
pub async fn load_reports(#[server(default)] filter: ReportFilter) -> Result<Reports, Problem> {
    let (current, account) = signed_in().await?;
    let applications = current.service().applications().of_account(account.id).await?;
    let applications: Vec<_> = applications
        .into_iter()
        .map(|application| (application.reference, application.display_name()))
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
    applications: &[(Reference, String)],
    (filter, zone): (&ReportFilter, &Zone),
) -> Result<Found, Problem> {
    let service = current.service();
    let (reference, wanted) = filter.parse(MESSAGES, zone)?;
    let messages = if filter.is_by_due_time() {
        let place = (wanted.limit, wanted.cursor.as_deref());
        service.messages().account_scheduled(account_id, reference, wanted.key, place).await?
    } else {
        service.messages().account_messages(account_id, reference, &wanted).await?
    };
    let total = total(service, account_id, (reference, &wanted), &messages).await?;
    let open = open_counts(service, account_id, reference, wanted.key).await?;
    // Later pages show only messages.
    let (chart, batches) = if wanted.cursor.is_none() {
        let of = (reference, &wanted);
        (
            Chart::find(service, account_id, applications, (filter, zone), of).await?,
            batches::find(service, account_id, reference, filter, &wanted).await?,
        )
    } else {
        (None, None)
    };
    Ok(Found { chart, batches, messages, total, open })
}

/// Returns the number of messages that match the filters, if known. Counts are kept only for whole
/// days and quarter hours. For other filters the number is known only if one page shows all
/// messages.
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
    let status = wanted.status;
    let (days, edges) = days_and_edges(wanted.from, wanted.to);
    if !edges.is_empty() && status.is_some_and(|status| !status.is_final()) {
        return Ok(None);
    }
    let mut total = 0;
    if !days.is_empty() {
        let days = (days.start, days.end - 1);
        let messages = service.messages();
        let counts = messages.account_totals(account_id, reference, wanted.key, days);
        let counts = counts.await?;
        total += status.map_or_else(|| counts.total(), |status| counts.get(status));
    }
    if !edges.is_empty() {
        let messages = service.messages();
        let found = messages.account_figures(account_id, reference, wanted.key, &edges);
        let found = found.await?;
        let figures = found.iter().flat_map(|(_, periods)| periods.values());
        total += figures.map(|figures| count(figures, status)).sum::<i64>();
    }
    Ok(Some(total))
}

/// Splits the time between two timestamps into whole days of UTC, and the quarter hours before and
/// after them. A missing timestamp leaves that end open. Counts by day are cheaper to read, however
/// long ago the first day is.
#[cfg(feature = "ssr")]
fn days_and_edges(
    from: Option<Timestamp>,
    to: Option<Timestamp>,
) -> (Range<i64>, Vec<QuarterRange>) {
    let quarters = |first: Timestamp, below: Timestamp| QuarterRange {
        first: first.quarter(),
        below: below.quarter(),
        ahead: 0,
        // Puts all quarter hours into one period.
        length: i64::MAX,
    };
    let first_day = from.map_or(0, |from| from.plus_ms(DAY_MS - 1).day());
    let day_below = to.map_or(i64::MAX, Timestamp::day);
    if let (Some(from), Some(to)) = (from, to)
        && first_day > day_below
    {
        return (0..0, vec![quarters(from, to)]);
    }
    let before = from.map(|from| quarters(from, Timestamp::of_day(first_day)));
    let after = to.map(|to| quarters(Timestamp::of_day(day_below), to));
    let edges = before.into_iter().chain(after);
    let edges = edges.filter(|range| range.first < range.below).collect();
    (first_day..day_below, edges)
}

/// Counts the account's messages that can still change. `reference` limits the count to an
/// application, and `key` limits it to a kind of key.
#[cfg(feature = "ssr")]
pub async fn open_counts(
    service: &Service,
    account_id: i64,
    reference: Option<Reference>,
    key: Option<KeyKind>,
) -> service::Result<StatusCounts> {
    let today = service.clock().now().day();
    let days = (today - DAYS_OPEN, today);
    service.messages().account_totals(account_id, reference, key, days).await
}

/// Whether some of these messages can still change.
pub fn is_under_way(counts: &StatusCounts) -> bool {
    counts.completed() < counts.total()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use domain::Timestamp;

    use super::days_and_edges;

    #[test]
    fn whole_days_and_what_is_before_and_after_them_are_all_there_is() {
        let at = |day: i64, hour: i64| Some(Timestamp::of_day(day).plus_ms(hour * 3_600_000));
        for (from, to, days, edges) in [
            (None, None, 0..i64::MAX, vec![]),
            (at(5, 0), at(7, 0), 5..7, vec![]),
            (at(5, 4), None, 6..i64::MAX, vec![(496, 576)]),
            (None, at(7, 4), 0..7, vec![(672, 688)]),
            (at(5, 22), at(7, 22), 6..7, vec![(568, 576), (672, 760)]),
            (at(5, 22), at(6, 22), 6..6, vec![(568, 576), (576, 664)]),
            (at(5, 4), at(5, 5), 0..0, vec![(496, 500)]),
            (at(5, 0), at(5, 5), 5..5, vec![(480, 500)]),
        ] {
            let (found, ranges) = days_and_edges(from, to);
            let ranges: Vec<_> = ranges.iter().map(|one| (one.first, one.below)).collect();
            assert_eq!((found, ranges), (days, edges), "{from:?} to {to:?}");
        }
    }
}
