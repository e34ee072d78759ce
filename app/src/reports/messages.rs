//! The list of messages on the reports page.

use domain::records::{MessageRecord, Paged};
use domain::{MessageStatus, Timestamp};
use leptos::prelude::*;

use super::columns::{Column, chosen};
use super::explained::meaning;
use super::text::in_table;
use super::{counted, price};
use crate::reports::{CSV_PATH, REPORTS_PATH, ReportFilter};
use crate::ui::{DateTime, Downloads, StateMark, Table, pager};

/// Renders a page of messages, and the link to the CSV file of all messages. If there are no
/// messages, a sentence says why and what to do. `total` is the number of messages that match the
/// filters, if known. `choices` is shown above the list.
pub fn messages_section(
    messages: &Paged<MessageRecord>,
    total: Option<i64>,
    (filter, choices): (&ReportFilter, impl IntoView + 'static),
    currency: &str,
) -> AnyView {
    let next = messages.next.as_deref();
    let pager = pager("messages", &filter.cursor, next, |way| {
        format!("{}#messages", filter.page_at("cursor", way))
    });
    let nothing = nothing(next.is_some(), filter);
    let download = filter.address(CSV_PATH, &[]);
    let download = (!messages.items.is_empty()).then(|| {
        view! { <p><Downloads href=download/></p> }
    });
    let found = (!messages.items.is_empty()).then(|| {
        let words = match total {
            Some(total) if filter.is_empty() => format!("{}.", counted(total, "message")),
            Some(total) if filter.has_application_alone() => {
                format!("{}, live and test.", counted(total, "message"))
            }
            Some(1) => "1 message fits these filters.".to_owned(),
            Some(total) => {
                let kinds = match filter.key.as_str() {
                    "" => ", live and test,",
                    _ => "",
                };
                format!("{}{kinds} fit these filters.", counted(total, "message"))
            }
            None => "There are more messages than one page shows.".to_owned(),
        };
        let order = filter.is_by_due_time().then_some(" The next due is first.");
        view! { <p class="fine">{words} {order} " Open a transaction ID to see what happened to the message."</p> }
    });
    view! {
        <h2 id="messages">"Messages"</h2>
        {found}
        {choices}
        {listed(&messages.items, &chosen(&filter.columns), currency, nothing)}
        {pager}
        {download}
    }
    .into_any()
}

/// Returns why no message is listed, and what to do.
fn nothing(goes_on: bool, filter: &ReportFilter) -> AnyView {
    if goes_on {
        "None of the messages searched so far fits these filters. Use the link below to search \
         older messages. A shorter range of days is faster to search."
            .into_any()
    } else if filter.is_empty() {
        view! {
            "No message was sent yet. Open an application under "
            <a href="/applications">"My Applications"</a>
            " to see the call that sends the first one, with the API key or the test key."
        }
        .into_any()
    } else if filter.has_application_alone() {
        let start = format!("/applications/{}/start", filter.application);
        view! {
            "This application sent no message yet. Its " <a href=start>"quick start"</a>
            " has programs that send the first one, with the API key or the test key."
        }
        .into_any()
    } else {
        view! {
            "No message fits these filters. Remove one of them above, or "
            <a href=REPORTS_PATH>"show all messages"</a>
            "."
        }
        .into_any()
    }
}

fn listed(
    messages: &[MessageRecord],
    columns: &[Column],
    currency: &str,
    nothing: AnyView,
) -> AnyView {
    let table = Table::wide(messages).compact().with_links();
    let table = columns.iter().fold(table, |table, column| with_column(table, *column, currency));
    table
        .styled("key", "Transaction ID", |message| {
            let transid = message.transid.to_string();
            let href = format!("/reports/{transid}");
            view! { <a class="row-link" href=href>{transid}</a> }
        })
        .in_region_or("Sent messages", nothing)
}

/// Renders the time that a message or a batch waits for.
pub fn scheduled_for(at: Timestamp) -> impl IntoView {
    view! { <div class="fine reason">"for " <DateTime at with_zone=true/></div> }
}

fn with_column<'a>(
    table: Table<'a, MessageRecord>,
    column: Column,
    currency: &str,
) -> Table<'a, MessageRecord> {
    let name = column.name();
    match column {
        Column::Time => table.styled("figures", name, |message| {
            view! { <DateTime at=message.created_at/> }
        }),
        Column::Number => table.styled("figures", name, |message| message.number.clone()),
        Column::Message => table.styled("message", name, |message| {
            view! {
                {in_table(&message.message)}
                {message.test.then(|| view! { " " <span class="tag">"test"</span> })}
            }
        }),
        Column::Status => table.column(name, |message| {
            let meaning = meaning(message.status, message.error.as_deref());
            let waits = message.send_at.filter(|_| message.status == MessageStatus::Scheduled);
            view! {
                <StateMark state=message.status/>
                {waits.map(scheduled_for)}
                {meaning.map(|sentence| view! { <div class="fine reason">{sentence}</div> })}
            }
        }),
        Column::Sender => table.column(name, |message| message.sender.clone()),
        Column::Completed => table
            .styled("figures", name, |message| message.final_at.map(|at| view! { <DateTime at/> })),
        Column::Pages => table.amount(name, |message| message.pages),
        Column::Segments => table.amount(name, |message| message.segments),
        Column::Cost => table.money(name, currency, |message| price(message.paid(), message.test)),
        Column::Request => table.styled("key", name, |message| message.requestid.clone()),
        Column::Batch => table.styled("key", name, |message| {
            message.batchid.map(|batchid| {
                let href = format!("/reports/{batchid}");
                view! { <a href=href>{batchid.to_string()}</a> }
            })
        }),
    }
}
