//! The page of a batch. It updates itself while the batch is being sent.

use domain::records::{BatchRecord, BatchStatus};
use domain::{MessageStatus, Money, Reference, Refusal};
use leptos::prelude::*;

use super::filter::CSV_PATH;
use super::progress::{progress, spoken};
use super::stop::{CANCEL, PAUSE, RESUME, Stop, StopAction};
use super::{application_fact, counted, grouped};
use crate::ui::{
    Confirmation, DateTime, Downloads, Fact, FormState, StateMark, Table, in_zone, optional_fact,
};

/// The path of the server-sent events with a batch's changes. Each event is a [`BatchRecord`] in
/// JSON.
pub const BATCH_EVENTS_PATH: &str = "/reports/{batchid}/events";

#[component]
pub fn BatchContent(
    batch: BatchRecord,
    reference: Reference,
    application_name: String,
    /// The refusal that asks for step-up authentication, if it is needed now.
    missing: Option<Refusal>,
    currency: String,
    affected: Option<(i64, Money)>,
    form: FormState,
) -> impl IntoView {
    let (id, actions) = (batch.batchid.to_string(), actions(&batch, affected, &currency));
    let address = format!("/reports/{}", batch.batchid);
    let messages = messages_of(&batch);
    let download = format!("{CSV_PATH}?batchid={}", batch.batchid);
    let live = RwSignal::new(batch);
    let is_open = move || live.with(|batch| batch.done_at.is_none());
    #[cfg(feature = "hydrate")]
    crate::ui::follow(&format!("{address}/events"), live, |batch| batch.done_at.is_none());
    view! {
        <div class="visually-hidden" role="status">{move || live.with(spoken)}</div>
        {move || facts(live.get(), application_fact(reference, &application_name), &currency)}
        <Stop id actions missing form/>
        <h2>"Messages by status"</h2>
        {move || live.with(counts)}
        {move || live.with(unlisted).map(|sentence| view! { <p>{sentence}</p> })}
        <p class="buttons">
            {move || {
                (!live.with(waits))
                    .then(|| {
                        view! {
                            <a class="button" href=messages.clone()>"Messages of this batch"</a>
                        }
                    })
            }}
            <Downloads href=download/>
            // The router leaves reloads to the browser.
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

/// Returns what can be done with a batch. `affected` is the number of its messages that this is
/// about at most, and their cost.
fn actions(batch: &BatchRecord, affected: Option<(i64, Money)>, currency: &str) -> Vec<StopAction> {
    let statuses = [MessageStatus::Scheduled, MessageStatus::Queued, MessageStatus::Sending];
    let open: i64 = statuses.into_iter().map(|status| batch.counts.get(status)).sum();
    if batch.done_at.is_some() || batch.status == BatchStatus::Cancelled || open == 0 {
        return Vec::new();
    }
    let (count, cost) = affected.unwrap_or_default();
    let subject = format!("Up to {} ({} {currency})", counted(count, "message"), cost.shown());
    let (action, label, effect, undo) = if batch.status == BatchStatus::Paused {
        let undo = "You can pause it again. Messages that are sent meanwhile stay sent.";
        (RESUME, "Resume batch", "can be submitted again.", undo)
    } else {
        (
            PAUSE,
            "Pause batch",
            "wait until you resume the batch. They expire as they would otherwise.",
            "You can undo this: resume the batch.",
        )
    };
    let confirmation = Confirmation::of(format!("{subject} {effect}"), undo);
    // The owner can't end a pause by support.
    let change = StopAction { action, label, confirmation };
    let change = batch.pause_reason.is_none().then_some(change);
    let cancel = StopAction {
        action: CANCEL,
        label: "Cancel batch",
        confirmation: Confirmation::of(
            format!(
                "{subject} aren't sent, and their price is released. This doesn't stop messages \
                 that a carrier has or may have."
            ),
            "You can't undo this.",
        ),
    };
    change.into_iter().chain([cancel]).collect()
}

/// Whether the batch waits for its time, so that none of its rows is a message yet.
fn waits(batch: &BatchRecord) -> bool {
    batch.send_at.is_some() && batch.counts.get(MessageStatus::Scheduled) == batch.rows
}

/// Returns a sentence about rows that no list of messages has.
fn unlisted(batch: &BatchRecord) -> Option<&'static str> {
    let is_cancelled = batch.counts.get(MessageStatus::Cancelled) > 0;
    if waits(batch) {
        Some("The messages are listed when their time comes.")
    } else if batch.send_at.is_some() && is_cancelled {
        Some("Rows that were cancelled before the batch's time aren't listed as messages.")
    } else {
        None
    }
}

/// Returns the address of the list of the batch's messages.
fn messages_of(batch: &BatchRecord) -> String {
    format!("/reports?batchid={}", batch.batchid)
}

/// Renders the facts of a batch, which change while it is being sent.
fn facts(batch: BatchRecord, application: AnyView, currency: &str) -> impl IntoView + use<> {
    let progress = progress(&batch);
    let send_at = batch.send_at.map(|at| view! { <DateTime at/> });
    let done = batch.done_at.map(|at| view! { <DateTime at/> });
    let cost = format!("{} {currency}", batch.paid().shown());
    let back = released(&batch, currency);
    view! {
        <dl class="facts">
            <Fact term="Status"><StateMark state=batch.status/></Fact>
            <Fact term="Progress">{progress}</Fact>
            <Fact term="Cost" class="figures">
                {cost} {back.map(|back| view! { <p class="fine">{back}</p> })}
            </Fact>
            <Fact term="Rows" class="figures">{grouped(batch.rows)}</Fact>
            <Fact term="Pages" class="figures">{grouped(batch.pages)}</Fact>
            {application}
            <Fact term="Uploaded with">
                {if batch.test { "the test key (not sent to a phone)" } else { "the API key" }}
            </Fact>
            <Fact term=in_zone("Created (UTC)") class="figures"><DateTime at=batch.created_at/></Fact>
            {optional_fact(in_zone("Scheduled for (UTC)"), "figures", send_at)}
            {optional_fact(in_zone("Done (UTC)"), "figures", done)}
            <Fact term="Batch ID" class="key">{batch.batchid.to_string()}</Fact>
            {optional_fact("Request ID", "key", batch.requestid.clone())}
        </dl>
        {(batch.status == BatchStatus::Expanding)
            .then(|| view! { <p class="fine">"Some rows of the file aren't messages yet."</p> })}
        {batch.pause_reason.map(paused_by_support)}
    }
}

/// Says that support paused the batch, and why.
fn paused_by_support(reason: String) -> impl IntoView {
    view! {
        <div class="notice">
            <p>"Paused by support: no more messages of this batch are sent until support resumes it."</p>
            <p>"Reason: " {reason}</p>
        </div>
    }
}

/// Returns a text about the released part of the price and about the test balance. Returns `None`
/// if neither applies.
fn released(batch: &BatchRecord, currency: &str) -> Option<String> {
    let back = (batch.released > Money::ZERO).then(|| {
        let cancelled = batch.counts.get(MessageStatus::Cancelled);
        let why = if cancelled == batch.rows {
            "because it was cancelled"
        } else if cancelled > 0 {
            "because some of the messages were cancelled, or no carrier accepted them"
        } else {
            "because no carrier accepted some of the messages"
        };
        format!(
            "The batch reserved {} {currency}. You aren't charged {} {currency} of that, {why}. ",
            batch.cost.shown(),
            batch.released.shown()
        )
    });
    let test = batch.test.then(|| "This batch used the test balance.".to_owned());
    let words: Vec<_> = back.into_iter().chain(test).collect();
    (!words.is_empty()).then(|| words.concat())
}

/// Renders the number of messages by status. A number above 0 links to its messages.
fn counts(batch: &BatchRecord) -> AnyView {
    let messages = messages_of(batch);
    let counts = batch.counts;
    Table::narrow(&MessageStatus::ALL)
        .column("Status", |status| view! { <StateMark state=*status/> })
        .styled("amount", "Messages", |status| {
            let count = counts.get(*status);
            let words = grouped(count);
            if count == 0 {
                words.into_any()
            } else {
                let href = format!("{messages}&status={status}");
                view! {
                    <a href=href>
                        {words} <span class="visually-hidden">{format!(" {status}")}</span>
                    </a>
                }
                .into_any()
            }
        })
        .view()
}
