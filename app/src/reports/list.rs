//! `/reports`: messages and batches, with filters.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::batches::batches_section;
use super::chart_section::ChartSection;
use super::columns;
use super::filter::ReportFilter;
use super::filters::Filters;
use super::messages::messages_section;
use super::results::{Found, LoadReports, Reports, is_under_way};
use crate::incidents::IncidentNotices;
use crate::page_data::PageData;
use crate::ui::{Loaded, Page};

#[component]
pub fn ReportsPage() -> impl IntoView {
    let query = use_query_map();
    let filter = Memo::new(move |_| query.with(|query| ReportFilter::read(|name| query.get(name))));
    let data = PageData::new(move || LoadReports { filter: filter.get() });
    // Whether narrow screens show the chart, also after the data is loaded again. A kind of chart in
    // the address was chosen at the chart.
    let chart_shown = RwSignal::new(filter.with_untracked(|filter| !filter.by.is_empty()));
    view! { <Loaded data render=move |reports| view! { <ReportsContent reports chart_shown/> }/> }
}

#[component]
fn ReportsContent(reports: Reports, chart_shown: RwSignal<bool>) -> impl IntoView {
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
                Some(found) => view! { <Sections found filter currency chart_shown/> }.into_any(),
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

/// Replaces the lists if a filter is invalid or the data can't be loaded.
#[component]
fn NothingShown(filter: ReportFilter) -> impl IntoView {
    let again = filter.page();
    view! {
        <p class="empty">
            "Nothing is listed. Correct the filters above, "
            // The router ignores links to the page's own address.
            <a href=again rel="external">
                "try again"
            </a> ", or " <a href="/reports">"show all messages"</a> "."
        </p>
    }
}

/// Renders the results. Batches come first if the user looked for a batch.
#[component]
fn Sections(
    found: Found,
    filter: ReportFilter,
    currency: String,
    chart_shown: RwSignal<bool>,
) -> impl IntoView {
    let batches =
        found.batches.map(|batches| batches_section(&batches, &filter, &currency).into_any());
    let is_of_batches = !(filter.batchid.is_empty() && filter.requestid.is_empty());
    let (first, last) = if is_of_batches { (batches, None) } else { (None, batches) };
    let contents = last.is_some().then(|| {
        view! {
            <p class="toc">
                <a href="#messages" rel="external">"Messages"</a>
                <a href="#batches" rel="external">"Batches"</a>
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
    let messages = messages_section(
        &found.messages,
        found.total,
        (&filter, columns::choices(&filter)),
        &currency,
    );
    view! {
        {reload}
        {contents}
        {found.chart.map(|chart| {
            view! {
                <ChartSwitch shown=chart_shown/>
                <div class="chart-section"><ChartSection chart filter currency/></div>
            }
        })}
        {first}
        {messages}
        {last}
    }
}

/// The switch of the chart. A narrow screen shows the chart once its reader asks for it, so that
/// the first message is seen at once. The switch works without scripts.
#[component]
fn ChartSwitch(shown: RwSignal<bool>) -> impl IntoView {
    let node = NodeRef::<leptos::html::Input>::new();
    // It may have been used before scripts ran, and browsers restore it on a reload.
    Effect::new(move || {
        if let Some(node) = node.get() {
            shown.set(node.checked());
        }
    });
    view! {
        <input
            type="checkbox"
            id="chart-shown"
            class="chart-switch"
            checked=shown.get_untracked()
            node_ref=node
            on:change=move |event| shown.set(event_target_checked(&event))
        />
        <label for="chart-shown" class="chart-switch-label">"Show the chart"</label>
    }
}
