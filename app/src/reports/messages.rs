//! The messages on the reports page.

use domain::records::{MessageRecord, Paged};
use leptos::prelude::*;

use super::explained::explained;
use crate::reports::{CSV_PATH, ReportFilter};
use crate::ui::{Moment, StateMark};

/// The section of the page: a page of messages, and the link to the CSV of all of them.
#[component]
pub fn MessagesSection(
    messages: Paged<MessageRecord>,
    filter: ReportFilter,
    currency: String,
) -> impl IntoView {
    let heading = view! { <h2 id="messages">"Messages"</h2> };
    let next = messages.next.map(|cursor| {
        let address = filter.address("/reports", ("cursor", &cursor));
        view! {
            <p>
                <a href=address rel="next">
                    "Next page"
                </a>
            </p>
        }
    });
    if messages.items.is_empty() {
        let nothing = if next.is_some() {
            "None of the messages searched so far fits these filters. The next page goes on with \
             older ones."
        } else if filter.is_empty() {
            "No message was sent yet. An application's page has the call that sends the first one."
        } else {
            "No message fits these filters."
        };
        return view! {
            {heading}
            <p class="empty">{nothing}</p>
            {next}
        }
        .into_any();
    }
    let download = filter.address(CSV_PATH, ("", ""));
    view! {
        {heading}
        <Table messages=messages.items currency/>
        {next}
        // The router leaves downloads to the browser.
        <p>
            <a class="button" href=download download="messages.csv" rel="external">
                "Download CSV"
            </a>
        </p>
    }
    .into_any()
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
                        <th scope="col" class="amount">"Segments"</th>
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
    let explained = explained(message.status, message.error.as_deref());
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
                {explained.map(|sentence| view! { <div class="fine reason">{sentence}</div> })}
            </td>
            <td data-label="Pages" class="amount">{message.pages.to_string()}</td>
            <td data-label="Segments" class="amount">{message.segments.to_string()}</td>
            <td data-label="Cost" class="amount">{message.cost.to_string()}</td>
            <td data-label="Transid" class="key">
                <a href=href>{transid}</a>
            </td>
        </tr>
    }
}
