//! `/reports`.

use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use leptos_router::hooks::use_query_map;

use super::filter::ReportFilter;
use crate::client::read;
use crate::problem::Problem;
use crate::ui::{Loaded, Page, Rendered};
#[cfg(feature = "ssr")]
use {
    super::parts::{Batches, Chart, Filters, Messages},
    crate::portal_request::{CurrentRequest, signed_in},
    crate::problem::Cause,
};

/// Messages on one page.
#[cfg(feature = "ssr")]
const MESSAGES: i64 = 50;

/// Messages and batches of the account, newest first, with the filters that chose them.
#[server(prefix = "/fn", endpoint = "reports", input = GetUrl)]
pub async fn load_reports(#[server(default)] filter: ReportFilter) -> Result<Rendered, Problem> {
    let (current, account) = signed_in().await?;
    let (found, problem) = match find(&current, account.id, &filter).await {
        Ok(found) => (Some(found), None),
        Err(problem) if is_about_filters(&problem) => (None, Some(problem)),
        Err(problem) => return Err(problem),
    };
    let applications = current.service().applications(account.id).await?;
    let references = applications
        .into_iter()
        .map(|application| (application.reference, application.category.to_string()))
        .collect();
    Ok(Rendered::of(view! {
        <Filters references filter problem/>
        {found}
    }))
}

#[cfg(feature = "ssr")]
async fn find(
    current: &CurrentRequest,
    account_id: i64,
    filter: &ReportFilter,
) -> Result<impl IntoView + use<>, Problem> {
    let (service, currency) = (current.service(), &current.site().currency);
    let (reference, wanted) = filter.parse(MESSAGES)?;
    let messages = service
        .account_messages(account_id, reference, &wanted)
        .await?;
    // Further pages are of the messages alone.
    let (chart, batches) = if wanted.cursor.is_none() {
        (
            Chart::find(service, account_id, reference, &wanted).await?,
            Batches::find(service, account_id, reference, filter, &wanted).await?,
        )
    } else {
        (None, None)
    };
    Ok(view! {
        {chart.map(|chart| chart.render())}
        {batches.map(|batches| batches.render(currency))}
        <Messages messages filter=filter.clone() currency=currency.clone()/>
    })
}

/// Such a problem is shown beside the filters, to be put right there.
#[cfg(feature = "ssr")]
fn is_about_filters(problem: &Problem) -> bool {
    matches!(
        problem.cause,
        Cause::Filter(_) | Cause::Cursor | Cause::NotFound
    )
}

#[component]
pub fn ReportsPage() -> impl IntoView {
    let query = use_query_map();
    let filter = Memo::new(move |_| query.with(|query| ReportFilter::read(|name| query.get(name))));
    let data = Resource::new(
        move || filter.get(),
        |filter| async { read(LoadReports { filter }).await.map(Rendered::placed) },
    );
    let render = |content: Rendered| {
        view! {
            <Page title="Reports">
                <div inner_html=content.html()></div>
            </Page>
        }
    };
    view! { <Loaded data render/> }
}
