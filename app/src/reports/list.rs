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
use crate::ui::{Choice, Field, FormAlert, FormState, Loaded, Moment, Page, StateMark};
#[cfg(feature = "ssr")]
use {crate::problem::Cause, crate::visit::signed_in};

/// Messages on one page.
#[cfg(feature = "ssr")]
const MESSAGES: i64 = 50;

/// What the page shows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    pub messages: Paged<MessageRecord>,
    /// Of the account's applications, to choose from.
    pub references: Vec<(Reference, String)>,
    pub currency: String,
    /// As it was typed.
    pub filter: ReportFilter,
    /// Why the filters can't be applied, when they can't.
    pub problem: Option<Problem>,
}

/// Messages of the account, newest first.
#[server(prefix = "/fn", endpoint = "reports", input = GetUrl)]
pub async fn load_reports(#[server(default)] filter: ReportFilter) -> Result<Report, Problem> {
    let (visit, account) = signed_in().await?;
    let service = visit.service();
    let found = match filter.parse(MESSAGES) {
        Ok((reference, wanted)) => {
            let found = service
                .account_messages(account.id, reference, &wanted)
                .await;
            found.map_err(Problem::from)
        }
        Err(problem) => Err(problem),
    };
    let (messages, problem) = match found {
        Ok(messages) => (messages, None),
        Err(problem) if is_about_filters(&problem) => (
            Paged {
                items: Vec::new(),
                next: None,
            },
            Some(problem),
        ),
        Err(problem) => return Err(problem),
    };
    let applications = service.applications(account.id).await?;
    let references = applications
        .into_iter()
        .map(|application| (application.reference, application.category.to_string()))
        .collect();
    let currency = visit.site().currency.clone();
    Ok(Report {
        messages,
        references,
        currency,
        filter,
        problem,
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
    let data = Resource::new(move || filter.get(), |filter| read(LoadReports { filter }));
    view! { <Loaded data render=|report| view! { <Messages report/> }/> }
}

#[component]
fn Messages(report: Report) -> impl IntoView {
    let Report {
        messages,
        references,
        currency,
        filter,
        problem,
    } = report;
    let download = filter.address(CSV_PATH, "");
    let next = messages.next.map(|cursor| {
        view! {
            <p>
                <a href=filter.address("/reports", &cursor) rel="next">"Next page"</a>
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
        <form class="filters" method="get" action="/reports" role="search" aria-label="Messages">
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
