//! `/reports/{transid}` and `/reports/{batchid}`.

use domain::Kind;
use domain::records::{ChargeRecord, MessageDetail, MessageRecord, TimelineEntry};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use leptos_router::hooks::use_params_map;
use serde::{Deserialize, Serialize};

use super::batch::{BatchDetail, LiveBatch};
use crate::client::read;
use crate::problem::Problem;
use crate::ui::{Loaded, Moment, Page, StateMark};
#[cfg(feature = "ssr")]
use {
    crate::problem::Cause,
    crate::visit::signed_in,
    domain::{BatchId, Transid},
};

/// What the page shows: the two share an address, told apart by how their ids begin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Subject {
    Message {
        detail: Box<MessageDetail>,
        currency: String,
    },
    Batch(LiveBatch),
}

/// One message or batch of the account.
#[server(prefix = "/fn", endpoint = "report", input = GetUrl)]
pub async fn load_report(id: String) -> Result<Subject, Problem> {
    let (visit, account) = signed_in().await?;
    let (service, currency) = (visit.service(), visit.site().currency.clone());
    if let Some(batchid) = BatchId::parse(&id) {
        let found = service.account_batch(account.id, batchid).await?;
        let batch = found.ok_or(Cause::NotFound)?;
        return Ok(Subject::Batch(LiveBatch::of(&batch, &currency)));
    }
    let transid = Transid::parse(&id).ok_or(Cause::NotFound)?;
    let found = service.account_message(account.id, transid).await?;
    let detail = Box::new(found.ok_or(Cause::NotFound)?);
    Ok(Subject::Message { detail, currency })
}

#[component]
pub fn ReportPage() -> impl IntoView {
    let params = use_params_map();
    let id = Memo::new(move |_| params.with(|params| params.get("id")).unwrap_or_default());
    let data = Resource::new(move || id.get(), |id| read(LoadReport { id }));
    let render = |subject| match subject {
        Subject::Message { detail, currency } => {
            view! { <Detail detail=*detail currency/> }.into_any()
        }
        Subject::Batch(batch) => view! { <BatchDetail batch/> }.into_any(),
    };
    view! { <Loaded data render/> }
}

#[component]
fn Detail(detail: MessageDetail, currency: String) -> impl IntoView {
    let MessageDetail {
        record,
        timeline,
        charge,
    } = detail;
    view! {
        <Page title="Message">
            <p class="back">
                <a href="/reports">"All messages"</a>
            </p>
            <Facts record=record.clone()/>
            <h2>"Text"</h2>
            <blockquote class="sms">{record.message}</blockquote>
            <h2>"Timeline"</h2>
            <Timeline timeline/>
            <h2>"Charge"</h2>
            <Charge charge currency/>
        </Page>
    }
}

#[component]
fn Facts(record: MessageRecord) -> impl IntoView {
    let kind = match record.kind {
        Kind::Local => "local",
        Kind::International => "international",
    };
    let error = record.error.map(|error| format!(" ({error})"));
    view! {
        <dl class="facts">
            <div>
                <dt>"Status"</dt>
                <dd>
                    <StateMark tone=record.status word=record.status.as_str()/>
                    {error}
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

fn counted(count: i64, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
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
