//! `/reports`.

use domain::records::{MessageRecord, Paged};
use domain::{MessageStatus, Reference};
use leptos::either::Either;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use leptos_router::hooks::use_query_map;
use serde::{Deserialize, Serialize};

use super::filter::{CSV_PATH, ReportFilter};
use crate::client::read;
use crate::problem::Problem;
use crate::ui::{Choice, Field, FormAlert, FormState, Loaded, Moment, Page, Rendered, StateMark};
#[cfg(feature = "ssr")]
use {
    super::parts::{Batches, Chart},
    crate::problem::Cause,
    crate::visit::signed_in,
    service::Service,
};

/// Messages on one page.
#[cfg(feature = "ssr")]
const MESSAGES: i64 = 50;

/// What the page shows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    pub found: Found,
    /// Of the account's applications, to choose from.
    pub references: Vec<(Reference, String)>,
    pub currency: String,
    /// As it was typed.
    pub filter: ReportFilter,
    /// Why the filters can't be applied, when they can't.
    pub problem: Option<Problem>,
}

/// What fits the filters.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Found {
    pub messages: Paged<MessageRecord>,
    /// Chart and batches, where they go with the filters.
    pub overview: Vec<Rendered>,
}

/// Messages and batches of the account, newest first.
#[server(prefix = "/fn", endpoint = "reports", input = GetUrl)]
pub async fn load_reports(#[server(default)] filter: ReportFilter) -> Result<Report, Problem> {
    let (visit, account) = signed_in().await?;
    let (service, currency) = (visit.service(), visit.site().currency.clone());
    let (found, problem) = match find(service, account.id, &filter, &currency).await {
        Ok(found) => (found, None),
        Err(problem) if is_about_filters(&problem) => (nothing(), Some(problem)),
        Err(problem) => return Err(problem),
    };
    let applications = service.applications(account.id).await?;
    let references = applications
        .into_iter()
        .map(|application| (application.reference, application.category.to_string()))
        .collect();
    Ok(Report {
        found,
        references,
        currency,
        filter,
        problem,
    })
}

#[cfg(feature = "ssr")]
async fn find(
    service: &Service,
    account_id: i64,
    filter: &ReportFilter,
    currency: &str,
) -> Result<Found, Problem> {
    let (reference, wanted) = filter.parse(MESSAGES)?;
    let messages = service
        .account_messages(account_id, reference, &wanted)
        .await?;
    let mut overview = Vec::new();
    // Further pages are of the messages alone.
    if wanted.cursor.is_none() {
        let chart = Chart::find(service, account_id, reference, &wanted).await?;
        overview.extend(chart.map(|chart| chart.render()));
        let batches = Batches::find(service, account_id, reference, filter, &wanted).await?;
        overview.extend(batches.map(|batches| batches.render(currency)));
    }
    Ok(Found { messages, overview })
}

#[cfg(feature = "ssr")]
fn nothing() -> Found {
    let messages = Paged {
        items: Vec::new(),
        next: None,
    };
    Found {
        messages,
        overview: Vec::new(),
    }
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
    let data = Resource::new(move || filter.get(), |filter| read(LoadReports { filter }));
    view! { <Loaded data render=|report| view! { <Reports report/> }/> }
}

#[component]
fn Reports(report: Report) -> impl IntoView {
    let Report {
        found: Found { messages, overview },
        references,
        currency,
        filter,
        problem,
    } = report;
    let download = filter.address(CSV_PATH, ("", ""));
    let next = messages.next.map(|cursor| {
        view! {
            <p>
                <a href=filter.address("/reports", ("cursor", &cursor)) rel="next">"Next page"</a>
            </p>
        }
    });
    let nothing = if filter.is_empty() && problem.is_none() {
        "No message was sent yet. An application's page has the call that sends the first one."
    } else {
        "No message fits these filters."
    };
    view! {
        <Page title="Reports">
            <Filters references filter problem/>
            {overview
                .into_iter()
                .map(|part| view! { <div inner_html=part.html()></div> })
                .collect_view()}
            <h2 id="messages">"Messages"</h2>
            {if messages.items.is_empty() {
                Either::Left(view! { <p class="empty">{nothing}</p> })
            } else {
                Either::Right(
                    view! {
                        <Table messages=messages.items currency/>
                        {next}
                        // The router leaves downloads to the browser.
                        <p>
                            <a class="button" href=download download="messages.csv" rel="external">
                                "Download CSV"
                            </a>
                        </p>
                    },
                )
            }}
        </Page>
    }
}

#[component]
fn Filters(
    references: Vec<(Reference, String)>,
    filter: ReportFilter,
    problem: Option<Problem>,
) -> impl IntoView {
    let any = || (String::new(), "any".to_owned());
    let applications = std::iter::once(any())
        .chain(references.into_iter().map(|(reference, category)| {
            (reference.to_string(), format!("{category} {reference}"))
        }))
        .collect();
    let statuses = std::iter::once(any())
        .chain(
            MessageStatus::ALL
                .into_iter()
                .map(|status| (status.as_str().to_owned(), status.as_str().to_owned())),
        )
        .collect();
    let form = FormState::plain("filter-alert", problem);
    view! {
        // A plain form: the filters stand in the address, and the page can be kept and shared.
        <form class="filters" method="get" action="/reports" role="search" aria-label="Reports">
            <FormAlert form/>
            <Choice
                label="Application"
                name="application"
                options=applications
                chosen=filter.application
            />
            <Choice label="Status" name="status" options=statuses chosen=filter.status/>
            <Field
                label="Number"
                name="number"
                autocomplete="off"
                value=filter.number
                form
            />
            <Field
                label="Request id"
                name="requestid"
                autocomplete="off"
                value=filter.requestid
                form
            />
            <Field
                label="Transid"
                name="transid"
                autocomplete="off"
                value=filter.transid
                form
            />
            <Field
                label="Batchid"
                name="batchid"
                autocomplete="off"
                value=filter.batchid
                form
            />
            <Field
                label="From (UTC)"
                name="from"
                kind="date"
                autocomplete="off"
                value=filter.from
                form
            />
            <Field label="To (UTC)" name="to" kind="date" autocomplete="off" value=filter.to form/>
            <div class="filters-do">
                <button type="submit" class="button button-primary">
                    "Apply filters"
                </button>
                <a class="button button-quiet" href="/reports">
                    "Clear"
                </a>
            </div>
        </form>
    }
}

#[component]
fn Table(messages: Vec<MessageRecord>, currency: String) -> impl IntoView {
    view! {
        <div class="table-scroll" tabindex="0" role="region" aria-label="Sent messages">
            <table class="stacks">
                <thead>
                    <tr>
                        <th scope="col">"Time (UTC)"</th>
                        <th scope="col">"Number"</th>
                        <th scope="col">"Message"</th>
                        <th scope="col">"Status"</th>
                        <th scope="col" class="amount">"Pages"</th>
                        <th scope="col" class="amount">
                            {format!("Cost ({currency})")}
                        </th>
                        <th scope="col">"Transid"</th>
                    </tr>
                </thead>
                <tbody>
                    {messages.into_iter().map(|message| view! { <Row message/> }).collect_view()}
                </tbody>
            </table>
        </div>
    }
}

#[component]
fn Row(message: MessageRecord) -> impl IntoView {
    let transid = message.transid.to_string();
    let href = format!("/reports/{transid}");
    view! {
        <tr>
            <td data-label="Time (UTC)" class="figures">
                <Moment at=message.created_at/>
            </td>
            <td data-label="Number" class="figures">{message.number}</td>
            <td data-label="Message" class="message">
                <span class="message-text">{message.message}</span>
                {message.test.then(|| view! { " " <span class="tag">"test"</span> })}
            </td>
            <td data-label="Status">
                <StateMark tone=message.status word=message.status.as_str()/>
            </td>
            <td data-label="Pages" class="amount">{message.pages.to_string()}</td>
            <td data-label="Cost" class="amount">{message.cost.to_string()}</td>
            <td data-label="Transid" class="key">
                <a href=href>{transid}</a>
            </td>
        </tr>
    }
}
