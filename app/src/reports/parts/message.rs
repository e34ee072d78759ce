//! A message's page.

use domain::Kind;
use domain::records::{ChargeRecord, MessageDetail, MessageRecord, TimelineEntry};
use leptos::prelude::*;

use super::counted;
use super::words::explained;
use crate::ui::{Moment, Rendered, StateMark};

/// What the page says of a message.
pub fn message(detail: MessageDetail, currency: &str) -> Rendered {
    let MessageDetail {
        record,
        timeline,
        charge,
    } = detail;
    Rendered::of(view! {
        <Facts record=record.clone()/>
        <h2>"Text"</h2>
        <blockquote class="sms">{record.message}</blockquote>
        <h2>"Timeline (UTC)"</h2>
        <Timeline timeline/>
        <h2>"Charge"</h2>
        <Charge charge currency=currency.to_owned()/>
    })
}

#[component]
fn Facts(record: MessageRecord) -> impl IntoView {
    let kind = match record.kind {
        Kind::Local => "local",
        Kind::International => "international",
    };
    let explained = explained(record.status, record.error.as_deref());
    let error = record.error.map(|error| format!(" ({error})"));
    view! {
        <dl class="facts">
            <div>
                <dt>"Status"</dt>
                <dd>
                    <StateMark tone=record.status word=record.status.as_str()/>
                    {error}
                    {explained.map(|sentence| view! { <p class="fine">{sentence}</p> })}
                </dd>
            </div>
            <div>
                <dt>"Number"</dt>
                <dd class="figures">{format!("{} ({kind})", record.number)}</dd>
            </div>
            <div>
                <dt>"Sent with"</dt>
                <dd>{if record.test { "the test key (to nobody)" } else { "the API key" }}</dd>
            </div>
            <div>
                <dt>"Sender name"</dt>
                <dd>{record.sender.unwrap_or_else(|| "none".to_owned())}</dd>
            </div>
            <div>
                <dt>"Length"</dt>
                <dd class="figures">
                    {format!("{}, {}", counted(record.pages, "page"), counted(record.segments, "segment"))}
                </dd>
            </div>
            <div>
                <dt>"Transid"</dt>
                <dd class="key">{record.transid.to_string()}</dd>
            </div>
            {record
                .batchid
                .map(|batchid| {
                    view! {
                        <div>
                            <dt>"Batch"</dt>
                            <dd class="key">
                                <a href=format!("/reports/{batchid}")>{batchid.to_string()}</a>
                            </dd>
                        </div>
                    }
                })}
            {record
                .requestid
                .map(|requestid| {
                    view! {
                        <div>
                            <dt>"Request id"</dt>
                            <dd class="key">{requestid}</dd>
                        </div>
                    }
                })}
        </dl>
    }
}

#[component]
fn Timeline(timeline: Vec<TimelineEntry>) -> impl IntoView {
    view! {
        <ol class="timeline">
            {timeline
                .into_iter()
                .map(|entry| {
                    view! {
                        <li>
                            <Moment at=entry.at/>
                            " "
                            <StateMark tone=entry.status word=entry.status.as_str()/>
                            {entry.detail.map(|detail| view! { <span class="fine">{detail}</span> })}
                        </li>
                    }
                })
                .collect_view()}
        </ol>
    }
}

#[component]
fn Charge(charge: ChargeRecord, currency: String) -> impl IntoView {
    let money = |amount: domain::Money| format!("{amount} {currency}");
    let line = format!(
        "{} at {} a page",
        counted(charge.pages, "page"),
        money(charge.unit_price)
    );
    view! {
        <dl class="facts">
            <div>
                <dt>"Price"</dt>
                <dd class="figures">{line}</dd>
            </div>
            <div>
                <dt>"Charged"</dt>
                <dd class="figures">{money(charge.charged)}</dd>
            </div>
            <div>
                <dt>"Released"</dt>
                <dd class="figures">{money(charge.released)}</dd>
            </div>
        </dl>
        <p>{charge.why}</p>
    }
}
