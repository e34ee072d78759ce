//! The page of a message.

use domain::records::{ChargeRecord, MessageDetail, MessageRecord};
use domain::{MessageStatus, Money, Reference, Refusal};
use leptos::prelude::*;

use super::explained::{advice, meaning};
use super::stop::{CANCEL, Stop, StopAction};
use super::text::{MessageText, erased};
use super::timeline::Timeline;
use super::{application_fact, counted};
use crate::ui::{Confirmation, DateTime, Fact, FormState, StateMark, in_zone, optional_fact};

#[component]
pub fn MessageContent(
    detail: MessageDetail,
    reference: Reference,
    application_name: String,
    /// The refusal that asks for step-up authentication, if it is needed now.
    missing: Option<Refusal>,
    currency: String,
    /// How many days texts are kept, or 0.
    text_days: i64,
    form: FormState,
) -> impl IntoView {
    let record = detail.record;
    let actions = actions(&record, &currency);
    let id = record.transid.to_string();
    let is_test = record.test;
    let text = match record.message.clone() {
        text if text.is_empty() => view! { <p>{erased(&record.number, text_days)}</p> }.into_any(),
        text => view! { <MessageText text/> }.into_any(),
    };
    let advice = advice(record.status, record.error.as_deref());
    let application = application_fact(reference, &application_name);
    view! {
        <MessageFacts record batches="/reports/" application/>
        <Stop id actions missing form/>
        {advice
            .map(|advice| {
                view! {
                    <h2>"What to do"</h2>
                    <p>{advice}</p>
                }
            })}
        <h2>"Text"</h2>
        {text}
        <h2>{in_zone("Timeline (UTC)")}</h2>
        <Timeline timeline=detail.timeline/>
        <h2>"Charge"</h2>
        <Charge charge=detail.charge is_test currency/>
    }
}

/// Returns what can be done with a message. A message that is being sent may wait for another
/// attempt, so it may still be cancelled.
fn actions(record: &MessageRecord, currency: &str) -> Vec<StopAction> {
    let is_open = record.status <= MessageStatus::Sending && !record.is_reply();
    let effect =
        format!("1 message isn't sent, and {} {currency} is released.", record.cost.shown());
    let confirmation = Confirmation::of(effect, "You can't undo this.");
    let action = StopAction { action: CANCEL, label: "Cancel message", confirmation };
    is_open.then_some(action).into_iter().collect()
}

/// Renders the facts of a message, without its text. The link to its batch is `batches` followed by
/// the batch ID.
#[component]
pub fn MessageFacts(
    record: MessageRecord,
    batches: &'static str,
    /// The fact that names the message's application. Omit it if the page names the application
    /// elsewhere.
    #[prop(optional)]
    application: Option<AnyView>,
) -> impl IntoView {
    let kind = record.kind.as_str();
    let key = match (record.is_reply(), record.test) {
        (true, _) => "no key: a free reply to STOP or HELP",
        (false, true) => "the test key (not sent to a phone)",
        (false, false) => "the API key",
    };
    let meaning = meaning(record.status, record.error.as_deref());
    let pages = counted(record.pages, "page");
    let length = format!("{pages}, {}", counted(record.segments, "segment"));
    let send_at = record.send_at.map(|at| view! { <DateTime at/> });
    let error = record.error.map(|error| format!(" ({error})"));
    let batch = record.batchid.map(|batchid| {
        view! { <a href=format!("{batches}{batchid}")>{batchid.to_string()}</a> }
    });
    view! {
        <dl class="facts">
            <Fact term="Status">
                <StateMark state=record.status/>
                {error}
                {meaning.map(|sentence| view! { <p class="fine">{sentence}</p> })}
            </Fact>
            <Fact term="Number" class="figures">{format!("{} ({kind})", record.number)}</Fact>
            {application}
            <Fact term="Sent with">{key}</Fact>
            <Fact term="Sender name">{record.sender.unwrap_or_else(|| "none".to_owned())}</Fact>
            <Fact term="Length" class="figures">{length}</Fact>
            <Fact term="Transaction ID" class="key">{record.transid.to_string()}</Fact>
            {optional_fact(in_zone("Scheduled for (UTC)"), "figures", send_at)}
            {optional_fact("Batch", "key", batch)}
            {optional_fact("Request ID", "key", record.requestid)}
        </dl>
    }
}

/// Renders the price of a message, the released amount, and the reason for both.
#[component]
pub fn Charge(charge: ChargeRecord, is_test: bool, currency: String) -> impl IntoView {
    let money = |amount: Money| format!("{} {currency}", amount.shown());
    let price = format!("{} at {} a page", counted(charge.pages, "page"), money(charge.unit_price));
    let (charged, released) = (money(charge.charged), money(charge.released));
    let paid = charge.charged.checked_sub(charge.released);
    let paid = money(paid.unwrap_or_default());
    view! {
        <dl class="facts">
            <Fact term="Price" class="figures">{price}</Fact>
            <Fact term="Charged" class="figures">{charged}</Fact>
            <Fact term="Released" class="figures">{released}</Fact>
            <Fact term="Paid" class="figures">{paid}</Fact>
        </dl>
        <p>{charge.why}</p>
        {is_test
            .then(|| {
                view! { <p>"These amounts are from the test balance. No real money was paid."</p> }
            })}
    }
}
