//! `/reports`: messages and batches, filtered.

use domain::records::{BatchRecord, MessageRecord, Paged};
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
    crate::problem::Cause,
    domain::Refusal,
};

/// How many messages one page has.
#[cfg(feature = "ssr")]
const MESSAGES: i64 = 50;

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reports {
    /// The account's applications, to choose from.
    applications: Vec<(Reference, Category)>,
    filter: ReportFilter,
    currency: String,
    /// The messages and batches that the filters found, or why the filters can't be used.
    found: Result<Found, Problem>,
    incidents: Vec<IncidentNote>,
}

/// The messages and batches that the filters found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Found {
    chart: Option<Chart>,
    batches: Option<Paged<BatchRecord>>,
    messages: Paged<MessageRecord>,
}

/// Messages and batches of the account, newest first, with the filters that chose them.
///
/// # Errors
/// When nobody is signed in, or the service fails.
#[server(prefix = "/fn", endpoint = "reports", input = GetUrl)]
pub async fn load_reports(#[server(default)] filter: ReportFilter) -> Result<Reports, Problem> {
    let (current, account) = signed_in().await?;
    let found = match find(&current, account.id, &filter).await {
        Err(problem) if !is_about_filters(&problem) => return Err(problem),
        found => found,
    };
    let applications = current.service().applications(account.id).await?;
    Ok(Reports {
        applications: applications
            .into_iter()
            .map(|application| (application.reference, application.category))
            .collect(),
        filter,
        currency: current.site().currency.clone(),
        found,
        incidents: incident_notes(current.service()).await?,
    })
}

#[cfg(feature = "ssr")]
async fn find(
    current: &CurrentRequest,
    account_id: i64,
    filter: &ReportFilter,
) -> Result<Found, Problem> {
    let service = current.service();
    let (reference, wanted) = filter.parse(MESSAGES)?;
    let messages = service
        .account_messages(account_id, reference, &wanted)
        .await?;
    // Further pages have messages alone.
    let (chart, batches) = if wanted.cursor.is_none() {
        (
            Chart::find(service, account_id, reference, &wanted).await?,
            batches::find(service, account_id, reference, filter, &wanted).await?,
        )
    } else {
        (None, None)
    };
    Ok(Found {
        chart,
        batches,
        messages,
    })
}

/// Whether a problem is shown beside the filters, where it can be corrected.
#[cfg(feature = "ssr")]
fn is_about_filters(problem: &Problem) -> bool {
    matches!(
        problem.cause,
        Cause::Filter(_) | Cause::Refused(Refusal::InvalidCursor) | Cause::NotFound
    )
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
    let sections = reports.found.ok().map(|found| {
        let batches = found.batches;
        view! {
            {found.chart.map(|chart| view! { <ChartSection chart/> })}
            {batches.map(|batches| batches_section(&batches, &filter, &currency))}
            {messages_section(&found.messages, &filter, &currency)}
        }
    });
    view! {
        <Page title="Reports">
            <IncidentNotices notes=reports.incidents/>
            <Filters applications=reports.applications filter=filter.clone() problem/>
            {sections}
        </Page>
    }
}
