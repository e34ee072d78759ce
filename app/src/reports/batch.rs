//! A batch's page, which follows the batch while it is being sent.

use domain::MessageStatus;
use domain::records::{BatchRecord, BatchStatus, StatusCounts};
use leptos::prelude::*;

use super::filter::CSV_PATH;
use super::progress::{progress, spoken};
use crate::ui::{Fact, Moment, StateMark, Table, optional_fact};

/// Where a batch's changes are sent, as server-sent events; each is a [`BatchRecord`] in JSON.
pub const BATCH_EVENTS_PATH: &str = "/reports/{batchid}/events";

#[component]
pub fn BatchContent(batch: BatchRecord, currency: String) -> impl IntoView {
    let address = format!("/reports/{}", batch.batchid);
    let messages = format!("/reports?batchid={}", batch.batchid);
    let download = format!("{CSV_PATH}?batchid={}", batch.batchid);
    let live = RwSignal::new(batch);
    let is_open = move || live.with(|batch| batch.status != BatchStatus::Done);
    #[cfg(feature = "hydrate")]
    crate::ui::follow(&format!("{address}/events"), live, |batch| {
        batch.status != BatchStatus::Done
    });
    view! {
        <div class="visually-hidden" role="status">
            {move || live.with(spoken)}
        </div>
        {move || facts(live.get(), &currency)}
        <p class="buttons">
            <a class="button" href=messages>
                "Messages of this batch"
            </a>
            // The router leaves downloads and reloads to the browser.
            <a class="button" href=download download="messages.csv" rel="external">
                "Download CSV"
            </a>
            {move || {
                is_open()
                    .then(|| {
                        view! {
                            <a class="button button-quiet" href=address.clone() rel="external">
                                "Reload"
                            </a>
                        }
                    })
            }}
        </p>
    }
}

/// The part of the page that changes while a batch is being sent: its figures, and its messages by
/// status.
fn facts(batch: BatchRecord, currency: &str) -> impl IntoView + use<> {
    let progress = progress(&batch);
    let cost = format!("{} {currency}", batch.cost);
    let done = batch.done_at.map(|at| view! { <Moment at/> });
    view! {
        <dl class="facts">
            <Fact term="Status"><StateMark state=batch.status/></Fact>
            <Fact term="Progress">{progress}</Fact>
            <Fact term="Cost" class="figures">{cost}</Fact>
            <Fact term="Rows" class="figures">{batch.rows.to_string()}</Fact>
            <Fact term="Pages" class="figures">{batch.pages.to_string()}</Fact>
            <Fact term="Uploaded with">
                {if batch.test { "the test key (to nobody)" } else { "the API key" }}
            </Fact>
            <Fact term="Created (UTC)" class="figures"><Moment at=batch.created_at/></Fact>
            {optional_fact("Done (UTC)", "figures", done)}
            <Fact term="Batchid" class="key">{batch.batchid.to_string()}</Fact>
            {optional_fact("Request id", "key", batch.requestid)}
        </dl>
        {(batch.status == BatchStatus::Expanding)
            .then(|| {
                view! { <p class="fine">"Rows of the file are still becoming messages."</p> }
            })}
        <h2>"Messages by status"</h2>
        {counts(batch.counts)}
    }
}

fn counts(counts: StatusCounts) -> AnyView {
    Table::narrow(&MessageStatus::ALL)
        .column("Status", |status| view! { <StateMark state=*status/> })
        .amount("Messages", |status| counts.get(*status))
        .view()
}
