//! An application's statement: its transfers, newest first.

use domain::records::{Paged, StatementLine, TransferKind};
use domain::{BatchId, Reference, Transid};
use leptos::either::Either;
use leptos::prelude::*;

use crate::ui::Moment;

/// The statement's table, or a sentence that there is no transfer yet.
#[component]
pub fn Statement(
    reference: Reference,
    statement: Paged<StatementLine>,
    currency: String,
) -> impl IntoView {
    let next = statement.next.map(|cursor| {
        let href = format!(
            "/applications/{reference}?cursor={}#statement",
            leptos_router::location::Url::escape(&cursor)
        );
        view! { <p><a href=href rel="next">"Older transfers"</a></p> }
    });
    view! {
        <h2 id="statement">"Statement"</h2>
        {if statement.items.is_empty() {
            Either::Left(view! { <p class="empty">"Nothing was paid in or charged yet."</p> })
        } else {
            Either::Right(view! { <Table lines=statement.items currency/> })
        }}
        {next}
    }
}

#[component]
fn Table(lines: Vec<StatementLine>, currency: String) -> impl IntoView {
    view! {
        <div class="table-scroll" tabindex="0" role="region" aria-label="Transfers">
            <table class="stacks">
                <thead>
                    <tr>
                        <th scope="col">"Time (UTC)"</th>
                        <th scope="col">"What"</th>
                        <th scope="col">"For"</th>
                        <th scope="col" class="amount">
                            {format!("Amount ({currency})")}
                        </th>
                        <th scope="col" class="amount">
                            {format!("Balance ({currency})")}
                        </th>
                    </tr>
                </thead>
                <tbody>
                    {lines.into_iter().map(|line| view! { <Row line/> }).collect_view()}
                </tbody>
            </table>
        </div>
    }
}

#[component]
fn Row(line: StatementLine) -> impl IntoView {
    let (what, sign) = match line.kind {
        TransferKind::Deposit => ("Deposit", "+"),
        // The minus sign, which is as wide as the plus sign.
        TransferKind::Charge => ("Charge", "\u{2212}"),
        TransferKind::Release => ("Release", "+"),
        // Between accounts of our own, and so on no application's statement.
        kind @ (TransferKind::Unmatched | TransferKind::Settle) => (kind.as_str(), ""),
    };
    let has_page =
        Transid::parse(&line.subject).is_some() || BatchId::parse(&line.subject).is_some();
    let subject = if has_page {
        let href = format!("/reports/{}", line.subject);
        Either::Left(view! { <a href=href>{line.subject}</a> })
    } else {
        Either::Right(view! { <span>{line.subject}</span> })
    };
    view! {
        <tr>
            <td data-label="Time (UTC)" class="figures">
                <Moment at=line.at/>
            </td>
            <td data-label="What">{what}</td>
            <td data-label="For" class="key">
                {subject}
            </td>
            <td data-label="Amount" class="amount">{format!("{sign}{}", line.amount)}</td>
            <td data-label="Balance" class="amount">{line.balance_after.to_string()}</td>
        </tr>
    }
}
