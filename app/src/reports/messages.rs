//! The messages on the reports page.

use domain::records::{MessageRecord, Paged};
use leptos::prelude::*;

use super::explained::meaning;
use super::pager::pager;
use super::{counted, price};
use crate::reports::{CSV_PATH, REPORTS_PATH, ReportFilter};
use crate::ui::{Moment, StateMark, Table};

/// A page of messages and the link to the CSV file of all of them, or a sentence that says why
/// there are none and what to do. `total` is how many messages fit the filters, where it is known.
pub fn messages_section(
    messages: &Paged<MessageRecord>,
    total: Option<i64>,
    filter: &ReportFilter,
    currency: &str,
) -> impl IntoView + use<> {
    let next = messages.next.as_deref();
    let pager = pager("messages", &filter.cursor, next, |way| {
        let address = filter.address(REPORTS_PATH, &[("by", &filter.by), ("cursor", way)]);
        format!("{address}#messages")
    });
    let nothing = nothing(next.is_some(), filter);
    let download = filter.address(CSV_PATH, &[]);
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
    let found = (!messages.items.is_empty()).then(|| {
        let words = match total {
            Some(total) if filter.is_empty() => format!("{}.", counted(total, "message")),
            Some(1) => "1 message fits these filters.".to_owned(),
            Some(total) => format!("{} fit these filters.", counted(total, "message")),
            None => "More messages fit these filters than one page shows.".to_owned(),
        };
        view! { <p class="fine">{words}</p> }
    });
    view! {
        <h2 id="messages">"Messages"</h2>
        {found}
        {listed(&messages.items, currency, nothing)}
        {pager}
        {download}
    }
}

/// Why no message is listed, and what to do.
fn nothing(goes_on: bool, filter: &ReportFilter) -> AnyView {
    if goes_on {
        "None of the messages searched so far fits these filters. The link below goes on with \
         older ones; a shorter range of days is searched faster."
            .into_any()
    } else if filter.is_empty() {
        view! {
            "No message was sent yet. The page of an application under "
            <a href="/applications">"My Applications"</a>
            " has the call that sends the first one, also with the test key."
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

fn listed(messages: &[MessageRecord], currency: &str, nothing: AnyView) -> AnyView {
    Table::wide(messages)
        .compact()
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
            let meaning = meaning(message.status, message.error.as_deref());
            view! {
                <StateMark state=message.status/>
                {meaning.map(|sentence| view! { <div class="fine reason">{sentence}</div> })}
            }
        })
        .amount("Pages", |message| message.pages)
        .amount("Segments", |message| message.segments)
        .money("Cost", currency, |message| {
            price(message.paid(), message.test)
        })
        .styled("key", "Transid", |message| {
            let transid = message.transid.to_string();
            let href = format!("/reports/{transid}");
            view! { <a href=href>{transid}</a> }
        })
        .in_region_or("Sent messages", nothing)
}
