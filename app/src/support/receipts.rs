//! `/support/carriers/{name}/receipts`: charts, receipts and answers of a carrier, and why some
//! receipts match no message.

use domain::carrier_figures::{CarrierEvent, HourCounts};
use domain::printable::printable;
use domain::support::{CarrierReceipts, ReceiptOutcome, ReceiptRecord};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use crate::page_data::PageData;
use crate::problem::Problem;
use crate::reports::{OutcomeBar, OutcomeChart, counted, grouped};
use crate::time_zone::ShownZone;
use crate::ui::{Loaded, Page, Table, in_path, in_zone};
#[cfg(feature = "ssr")]
use {
    crate::portal_request::staff, crate::problem::Cause, domain::Refusal, service::ReceiptFilter,
};

/// The latest receipts and answers of a carrier, the receipts that match no message, and the
/// carrier's figures by hour.
type Lists = (CarrierReceipts, CarrierReceipts, Vec<HourCounts>);

/// Loads a carrier's latest receipts and answers, and its unmatched receipts.
#[server(prefix = "/fn", endpoint = "carrier-receipts", input = GetUrl)]
pub async fn load_carrier_receipts(name: String) -> Result<Lists, Problem> {
    let (current, _) = staff().await?;
    let delivery = current.service().delivery();
    let latest = delivery.carrier_receipts(&name, &ReceiptFilter::All).await;
    let latest = latest.map_err(|error| match error.refusal() {
        Some(Refusal::NoSuchCarrier) => Cause::NotFound.into(),
        _ => Problem::from(error),
    })?;
    let unmatched = delivery.carrier_receipts(&name, &ReceiptFilter::Unmatched).await?;
    let hours = delivery.carrier_hours(&name).await?;
    Ok((latest, unmatched, hours))
}

#[component]
pub fn CarrierReceiptsPage() -> impl IntoView {
    let name = in_path("name");
    let data = PageData::new(move || LoadCarrierReceipts { name: name.get() });
    view! { <Loaded data render=move |lists| view! { <Receipts lists/> }/> }
}

#[component]
fn Receipts(lists: Lists) -> impl IntoView {
    let (latest, unmatched, hours) = lists;
    let (answers, receipts): (Vec<_>, Vec<_>) =
        latest.receipts.into_iter().partition(|receipt| receipt.outcome.is_of_answer());
    let advice = unmatched.suggestions.iter().map(|form| unmatched.advice(*form));
    let advice = advice.map(|advice| view! { <p class="notice">{advice}</p> }).collect_view();
    view! {
        <Page title="Receipts and figures" back=("/support/carriers", "Carriers")>
            <p class="lead">
                {format!(
                    "Receipts and answers from {}. Times are in UTC. Numbers and IDs are as the \
                     carrier writes them.",
                    latest.carrier,
                )}
            </p>
            <h2>"Answers in the last 24 hours"</h2>
            {answers_chart(&hours)}
            <h2>"Receipts in the last 24 hours"</h2>
            {receipts_chart(&hours)}
            {unmatched_count(&hours)}
            <h2>"Receipts that match no message"</h2>
            {advice}
            {unmatched_table(&unmatched.receipts)}
            <h2>"Latest receipts"</h2>
            {latest_table(&receipts)
                .styled("key", "As received", written)
                .in_region_or("Latest receipts", "No receipt is kept.")}
            <h2>"Latest answers"</h2>
            <p class="fine">
                "Answers that accept a message with an ID aren't kept, because the message has the \
                 ID. Of answers that ask us to slow down or have no ID, one per second is kept."
            </p>
            {latest_table(&answers)
                .styled("key", "Answer", written)
                .in_region_or("Latest answers", "No answer is kept.")}
        </Page>
    }
}

/// Returns a receipt or an answer as the carrier wrote it, without the message's text.
fn written(receipt: &ReceiptRecord) -> String {
    printable(receipt.raw.as_deref().unwrap_or_default()).into_owned()
}

fn answers_chart(hours: &[HourCounts]) -> AnyView {
    let bars = bars(hours, |hour| {
        let unanswered = hour.counts.get(CarrierEvent::Unanswered);
        (hour.counts.get(CarrierEvent::Accepted), hour.counts.not_accepted() + unanswered)
    });
    chart("answers", "submit", ("Accepted", "Not accepted"), &bars)
}

fn receipts_chart(hours: &[HourCounts]) -> AnyView {
    let bars =
        bars(hours, |hour| (hour.counts.get(CarrierEvent::Delivered), hour.counts.undelivered()));
    chart("receipts", "receipt", ("Delivered", "Not delivered"), &bars)
}

/// Renders the number of receipts that aren't in the chart, because they matched no message.
fn unmatched_count(hours: &[HourCounts]) -> Option<AnyView> {
    let unmatched: u64 = hours.iter().map(|hour| hour.counts.get(CarrierEvent::Unmatched)).sum();
    let sentence = || format!("{} matched no message.", counted(count(unmatched), "receipt"));
    (unmatched > 0).then(|| view! { <p class="fine">{sentence()}</p> }.into_any())
}

fn count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Returns a bar for each hour. `parts` returns how many events were good, and how many bad.
fn bars(hours: &[HourCounts], parts: impl Fn(&HourCounts) -> (u64, u64)) -> Vec<OutcomeBar> {
    let bar = |hour: &HourCounts| {
        let (good, bad) = parts(hour);
        let name = ShownZone::read(|zone| zone.to_table(hour.began_at));
        // Without the seconds.
        let name = name.get(..16).unwrap_or_default().to_owned();
        OutcomeBar { name, good: count(good), bad: count(bad) }
    };
    hours.iter().map(bar).collect()
}

/// Renders a chart, or a sentence if nothing happened.
fn chart(
    id: &'static str,
    noun: &str,
    words: (&'static str, &'static str),
    bars: &[OutcomeBar],
) -> AnyView {
    let good: i64 = bars.iter().map(|bar| bar.good).sum();
    let bad: i64 = bars.iter().map(|bar| bar.bad).sum();
    if good + bad == 0 {
        let sentence = format!("There were no {noun}s.");
        return view! { <p class="empty">{sentence}</p> }.into_any();
    }
    let (all, bad) = (counted(good + bad, noun), grouped(bad));
    let was = words.1.to_lowercase();
    let title = format!("{all}, {bad} of them {was}; the table has the figures by hour");
    OutcomeChart { id, title, heading: in_zone("Hour (UTC)"), words, bars }.view()
}

fn unmatched_table(receipts: &[ReceiptRecord]) -> AnyView {
    table(receipts)
        .column("Reason", |receipt| {
            printable(receipt.reason.as_deref().unwrap_or_default()).into_owned()
        })
        .styled("key", "May be for", |receipt| {
            let links = receipt.candidates.iter().map(|candidate| {
                let transid = candidate.transid.to_string();
                let href = format!("/support/messages/{transid}");
                view! { <a href=href>{transid}</a> " " }
            });
            links.collect_view()
        })
        .in_region_or("Receipts that match no message", "Every receipt matches a message.")
}

fn latest_table(receipts: &[ReceiptRecord]) -> Table<'_, ReceiptRecord> {
    table(receipts)
        .column("What was made of it", |receipt| match receipt.outcome {
            ReceiptOutcome::Matched => "counts for a message",
            ReceiptOutcome::Unmatched => "matches no message yet",
            ReceiptOutcome::Intermediate => "the message is still on its way",
            ReceiptOutcome::UnknownState => "its state isn't known",
            ReceiptOutcome::AcceptedWithoutId => "the message is submitted, without an ID",
            ReceiptOutcome::Refused => "this carrier doesn't get the message again",
            ReceiptOutcome::Deferred => "the message is submitted again later",
            ReceiptOutcome::Throttled => "messages are submitted more slowly",
            ReceiptOutcome::Held => "messages wait, or take another route",
            ReceiptOutcome::UnknownOutcome => "the message may have been accepted",
        })
        .styled("key", "Message", |receipt| {
            receipt.transid.map(|transid| {
                let transid = transid.to_string();
                let href = format!("/support/messages/{transid}");
                view! { <a href=href>{transid}</a> }
            })
        })
}

fn table(receipts: &[ReceiptRecord]) -> Table<'_, ReceiptRecord> {
    let text = |text: &str| printable(text).into_owned();
    Table::wide(receipts)
        .time("Received (UTC)", |receipt| receipt.received_at)
        .styled("key", "Carrier message ID", move |receipt| {
            text(receipt.written_id.as_deref().unwrap_or("none"))
        })
        .styled("figures", "Number", move |receipt| text(&receipt.number))
        .column("State", move |receipt| text(&receipt.state))
        .column("Error", move |receipt| text(receipt.error.as_deref().unwrap_or("none")))
}
