//! `/support/carriers/{name}/receipts`: the receipts of a carrier, and why some match no message.

use domain::printable::printable;
use domain::support::{CarrierReceipts, ReceiptOutcome, ReceiptRecord};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{Loaded, Page, Table, in_path};
#[cfg(feature = "ssr")]
use {
    crate::portal_request::staff, crate::problem::Cause, domain::Refusal, service::ReceiptFilter,
};

/// The latest receipts of a carrier, and those that match no message.
type Lists = (CarrierReceipts, CarrierReceipts);

/// Loads a carrier's latest receipts, and its unmatched ones.
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
    Ok((latest, unmatched))
}

#[component]
pub fn CarrierReceiptsPage() -> impl IntoView {
    let name = in_path("name");
    let data = PageData::new(move || LoadCarrierReceipts { name: name.get() });
    view! { <Loaded data render=move |lists| view! { <Receipts lists/> }/> }
}

#[component]
fn Receipts(lists: Lists) -> impl IntoView {
    let (latest, unmatched) = lists;
    let advice = unmatched.suggestions.iter().map(|form| unmatched.advice(*form));
    let advice = advice.map(|advice| view! { <p class="notice">{advice}</p> }).collect_view();
    view! {
        <Page title="Receipts" back=("/support/carriers", "Carriers")>
            <p class="lead">
                {format!(
                    "Receipts from {}. Times are in UTC. Numbers and IDs are as the carrier writes \
                     them.",
                    latest.carrier,
                )}
            </p>
            <h2>"Receipts that match no message"</h2>
            {advice}
            {unmatched_table(&unmatched.receipts)}
            <h2>"Latest receipts"</h2>
            {latest_table(&latest.receipts)}
        </Page>
    }
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

fn latest_table(receipts: &[ReceiptRecord]) -> AnyView {
    table(receipts)
        .column("What was made of it", |receipt| match receipt.outcome {
            ReceiptOutcome::Matched => "counts for a message",
            ReceiptOutcome::Unmatched => "matches no message yet",
            ReceiptOutcome::Intermediate => "the message is still on its way",
            ReceiptOutcome::UnknownState => "its state isn't known",
        })
        .styled("key", "Message", |receipt| {
            receipt.transid.map(|transid| {
                let transid = transid.to_string();
                let href = format!("/support/messages/{transid}");
                view! { <a href=href>{transid}</a> }
            })
        })
        .in_region_or("Latest receipts", "No receipt is kept.")
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
}
