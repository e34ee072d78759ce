//! A message's page.

use domain::records::{ChargeRecord, MessageDetail, MessageRecord, TimelineEntry};
use leptos::prelude::*;

use super::counted;
use super::explained::explained;
use crate::ui::{Fact, Moment, StateMark, optional_fact};

#[component]
pub fn MessageContent(detail: MessageDetail, currency: String) -> impl IntoView {
    let text = detail.record.message.clone();
    view! {
        <MessageFacts record=detail.record batches="/reports/"/>
        <h2>"Text"</h2>
        <blockquote class="sms">{text}</blockquote>
        <h2>"Timeline (UTC)"</h2>
        <Timeline timeline=detail.timeline/>
        <h2>"Charge"</h2>
        <Charge charge=detail.charge currency/>
    }
}

/// The facts of a message, without its text. The link to its batch is `batches` followed by the
/// batchid.
#[component]
pub fn MessageFacts(record: MessageRecord, batches: &'static str) -> impl IntoView {
    let kind = record.kind.as_str();
    let explained = explained(record.status, record.error.as_deref());
    let pages = counted(record.pages, "page");
    let length = format!("{pages}, {}", counted(record.segments, "segment"));
    let error = record.error.map(|error| format!(" ({error})"));
    let batch = record.batchid.map(|batchid| {
        view! { <a href=format!("{batches}{batchid}")>{batchid.to_string()}</a> }
    });
    view! {
        <dl class="facts">
            <Fact term="Status">
                <StateMark state=record.status/>
                {error}
                {explained.map(|sentence| view! { <p class="fine">{sentence}</p> })}
            </Fact>
            <Fact term="Number" class="figures">{format!("{} ({kind})", record.number)}</Fact>
            <Fact term="Sent with">
                {if record.test { "the test key (to nobody)" } else { "the API key" }}
            </Fact>
            <Fact term="Sender name">{record.sender.unwrap_or_else(|| "none".to_owned())}</Fact>
            <Fact term="Length" class="figures">
                {length}
            </Fact>
            <Fact term="Transid" class="key">{record.transid.to_string()}</Fact>
            {optional_fact("Batch", "key", batch)}
            {optional_fact("Request id", "key", record.requestid)}
        </dl>
    }
}

#[component]
pub fn Timeline(timeline: Vec<TimelineEntry>) -> impl IntoView {
    view! {
        <ol class="timeline">
            {timeline
                .into_iter()
                .map(|entry| {
                    view! {
                        <li>
                            <Moment at=entry.at/>
                            " "
                            <StateMark state=entry.status/>
                            {entry
                                .detail
                                .map(|detail| view! { <span class="fine">{detail}</span> })}
                        </li>
                    }
                })
                .collect_view()}
        </ol>
    }
}

#[component]
pub fn Charge(charge: ChargeRecord, currency: String) -> impl IntoView {
    let money = |amount: domain::Money| format!("{amount} {currency}");
    let price = format!(
        "{} at {} a page",
        counted(charge.pages, "page"),
        money(charge.unit_price)
    );
    let (charged, released) = (money(charge.charged), money(charge.released));
    view! {
        <dl class="facts">
            <Fact term="Price" class="figures">{price}</Fact>
            <Fact term="Charged" class="figures">{charged}</Fact>
            <Fact term="Released" class="figures">{released}</Fact>
        </dl>
        <p>{charge.why}</p>
    }
}
