//! An application's statement: its transfers, newest first.

use domain::records::{Paged, StatementLine, TransferKind};
use domain::{BatchId, Transid};
use leptos::either::Either;
use leptos::prelude::*;

use crate::ui::{Moment, Table};

/// The statement's table, or a sentence that there is no transfer yet, on the page with this path.
/// The link of a message or a batch is `subjects` and its id.
pub fn statement(
    page: &str,
    subjects: &'static str,
    statement: Paged<StatementLine>,
    currency: &str,
) -> impl IntoView + use<> {
    let next = statement.next.map(|cursor| {
        let href = format!(
            "{page}?cursor={}#statement",
            leptos_router::location::Url::escape(&cursor)
        );
        view! { <p><a href=href rel="next">"Older transfers"</a></p> }
    });
    view! {
        <h2 id="statement">"Statement"</h2>
        {transfers(&statement.items, subjects, currency)}
        {next}
    }
}

fn transfers(lines: &[StatementLine], subjects: &'static str, currency: &str) -> AnyView {
    Table::wide(lines)
        .styled(
            "figures",
            "Time (UTC)",
            |line| view! { <Moment at=line.at/> },
        )
        .column("What", |line| kind(line.kind).0)
        .styled("key", "For", move |line| subject(line, subjects))
        .money("Amount", currency, |line| {
            format!("{}{}", kind(line.kind).1, line.amount)
        })
        .money("Balance", currency, |line| line.balance_after)
        .in_region_or("Transfers", "Nothing was paid in or charged yet.")
}

/// The name of a kind of transfer, and the sign of its amount.
const fn kind(kind: TransferKind) -> (&'static str, &'static str) {
    match kind {
        TransferKind::Deposit => ("Deposit", "+"),
        // The minus sign, which is as wide as the plus sign.
        TransferKind::Charge => ("Charge", "\u{2212}"),
        TransferKind::Release => ("Release", "+"),
        // Between accounts of our own, and so on no application's statement.
        TransferKind::Unmatched | TransferKind::Settle => (kind.as_str(), ""),
    }
}

/// The message, batch or payment that a transfer is for; messages and batches have a page.
fn subject(line: &StatementLine, subjects: &'static str) -> impl IntoView + use<> {
    let subject = line.subject.clone();
    if Transid::parse(&subject).is_none() && BatchId::parse(&subject).is_none() {
        return Either::Right(view! { <span>{subject}</span> });
    }
    let href = format!("{subjects}{subject}");
    Either::Left(view! { <a href=href>{subject}</a> })
}
