//! `/reports`: messages and batches, filtered.

use domain::records::{BatchRecord, MessageRecord, Paged, StatusCounts};
use domain::{Category, Reference};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use leptos_router::hooks::use_query_map;
use serde::{Deserialize, Serialize};

use super::batches::batches_section;
use super::chart::{Chart, ChartSection};
use super::filter::ReportFilter;
use super::filters::Filters;
use super::messages::messages_section;
use crate::client::call;
use crate::incidents::{IncidentNote, IncidentNotices};
use crate::problem::Problem;
use crate::ui::{Loaded, Page};
#[cfg(feature = "ssr")]
use {
    super::batches,
    crate::incidents::incident_notes,
    crate::portal_request::{CurrentRequest, signed_in},
    domain::{KeyKind, Timestamp},
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
    applications: Vec<(Reference, Category)>,
    filter: ReportFilter,
    currency: String,
    /// The day that it is, since 1970-01-01 UTC.
    today: i64,
    /// The messages and batches that the filters found, or why they can't be shown.
    pub found: Result<Found, Problem>,
    incidents: Vec<IncidentNote>,
}

/// The messages and batches that the filters found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    chart: Option<Chart>,
    batches: Option<Paged<BatchRecord>>,
    messages: Paged<MessageRecord>,
    /// How many messages fit the filters, where that is known.
    total: Option<i64>,
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
    let found = find(&current, account.id, &applications, &filter).await;
    Ok(Reports {
        applications,
        filter,
        currency: current.site().currency.clone(),
        today: current.service().clock().now().day(),
        found,
        incidents: incident_notes(current.service()).await?,
    })
}

#[cfg(feature = "ssr")]
async fn find(
    current: &CurrentRequest,
    account_id: i64,
    applications: &[(Reference, Category)],
    filter: &ReportFilter,
) -> Result<Found, Problem> {
    let service = current.service();
    let (reference, wanted) = filter.parse(MESSAGES)?;
    let messages = service
        .account_messages(account_id, reference, &wanted)
        .await?;
    let total = total(service, account_id, (reference, &wanted), &messages).await?;
    let open = open_counts(service, account_id, reference, wanted.key).await?;
    // Further pages have messages alone.
    let (chart, batches) = if wanted.cursor.is_none() {
        let of = (reference, &wanted);
        (
            Chart::find(service, account_id, applications, filter, of).await?,
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
    let first = wanted.from.map_or(0, Timestamp::day);
    let last = wanted.to.map_or(i64::MAX, |to| to.plus_ms(-1).day());
    let days = (first, last);
    let counts = service.account_totals(account_id, reference, wanted.key, days);
    let counts = counts.await?;
    Ok(Some(match wanted.status {
        Some(status) => counts.get(status),
        None => counts.total(),
    }))
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

#[component]
pub fn ReportsPage() -> impl IntoView {
    let query = use_query_map();
    let filter = Memo::new(move |_| query.with(|query| ReportFilter::read(|name| query.get(name))));
    let data = Resource::new(move || filter.get(), |filter| call(LoadReports { filter }));
    view! { <Loaded data render=|reports| view! { <ReportsContent reports/> }/> }
}

#[component]
fn ReportsContent(reports: Reports) -> impl IntoView {
    let (filter, currency) = (reports.filter, reports.currency);
    let problem = reports.found.as_ref().err().cloned();
    #[cfg(feature = "ssr")]
    if let Some(problem) = &problem {
        crate::portal_request::set_status(&problem.cause);
    }
    let found = RwSignal::new(reports.found.ok());
    #[cfg(feature = "hydrate")]
    super::refresh::refresh(&filter, found);
    let sections = {
        let filter = filter.clone();
        move || {
            let (found, filter, currency) = (found.get(), filter.clone(), currency.clone());
            match found {
                Some(found) => view! { <Sections found filter currency/> }.into_any(),
                None => view! { <NothingShown filter/> }.into_any(),
            }
        }
    };
    view! {
        <Page title="Reports">
            <IncidentNotices notes=reports.incidents/>
            <Filters
                applications=reports.applications
                filter=filter
                today=reports.today
                problem
            />
            <div id="found">{sections}</div>
        </Page>
    }
}

/// What stands below filters that can't be used, or when nothing could be read.
#[component]
fn NothingShown(filter: ReportFilter) -> impl IntoView {
    let again = filter.page();
    view! {
        <p class="empty">
            "Nothing is listed. Correct the filters above, "
            // The router would do nothing at the address of the page itself.
            <a href=again rel="external">
                "try again"
            </a> ", or " <a href="/reports">"show all messages"</a> "."
        </p>
    }
}

/// What the filters found. Batches come first where a batch was looked for.
#[component]
fn Sections(found: Found, filter: ReportFilter, currency: String) -> impl IntoView {
    let batches = found
        .batches
        .map(|batches| batches_section(&batches, &filter, &currency).into_any());
    let is_of_batches = !(filter.batchid.is_empty() && filter.requestid.is_empty());
    let (first, last) = if is_of_batches {
        (batches, None)
    } else {
        (None, batches)
    };
    let contents = last.is_some().then(|| {
        view! {
            <p class="toc">
                <a href="#messages">"Messages"</a>
                <a href="#batches">"Batches"</a>
            </p>
        }
    });
    let reload = is_under_way(&found.open).then(|| {
        let here = filter.page();
        view! {
            <p class="fine">
                "Some messages are still under way. " <a href=here rel="external">
                    "Reload"
                </a>
            </p>
        }
    });
    let messages = messages_section(&found.messages, found.total, &filter, &currency);
    view! {
        {reload}
        {contents}
        {found.chart.map(|chart| view! { <ChartSection chart filter currency/> })}
        {first}
        {messages}
        {last}
    }
}
