//! The messages on the reports page.

use domain::records::{MessageRecord, Paged};
use leptos::prelude::*;

use super::explained::explained;
use crate::reports::{CSV_PATH, ReportFilter};
use crate::ui::{Moment, StateMark, Table};

/// A page of messages and the link to the CSV file of all of them, or a sentence that says why
/// there are none.
pub fn messages_section(
    messages: &Paged<MessageRecord>,
    filter: &ReportFilter,
    currency: &str,
) -> impl IntoView + use<> {
    let next = messages.next.as_deref().map(|cursor| {
        let address = filter.address("/reports", ("cursor", cursor));
        view! {
            <p>
                <a href=address rel="next">
                    "Next page"
                </a>
            </p>
        }
    });
    let nothing = if next.is_some() {
        "None of the messages searched so far fits these filters. The next page goes on with older \
         ones."
    } else if filter.is_empty() {
        "No message was sent yet. An application's page has the call that sends the first one."
    } else {
        "No message fits these filters."
    };
    let download = filter.address(CSV_PATH, ("", ""));
    let download = (!messages.items.is_empty()).then(|| {
        // The router leaves downloads to the browser.
        view! {
            <p>
                <a class="button" href=download download="messages.csv" rel="external">
                    "Download CSV"
                </a>
            </p>
        }
    });
    view! {
        <h2 id="messages">"Messages"</h2>
        {listed(&messages.items, currency, nothing)}
        {next}
        {download}
    }
}

fn listed(messages: &[MessageRecord], currency: &str, nothing: &'static str) -> AnyView {
    Table::wide(messages)
        .styled("figures", "Time (UTC)", |message| {
            view! { <Moment at=message.created_at/> }
        })
        .styled("figures", "Number", |message| message.number.clone())
        .styled("message", "Message", |message| {
            view! {
                <span class="message-text">{message.message.clone()}</span>
                {message.test.then(|| view! { " " <span class="tag">"test"</span> })}
            }
        })
        .column("Status", |message| {
            let explained = explained(message.status, message.error.as_deref());
            view! {
                <StateMark state=message.status/>
                {explained.map(|sentence| view! { <div class="fine reason">{sentence}</div> })}
            }
        })
        .amount("Pages", |message| message.pages)
        .amount("Segments", |message| message.segments)
        .money("Cost", currency, |message| message.cost)
        .styled("key", "Transid", |message| {
            let transid = message.transid.to_string();
            let href = format!("/reports/{transid}");
            view! { <a href=href>{transid}</a> }
        })
        .in_region_or("Sent messages", nothing)
}
