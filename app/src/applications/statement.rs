//! `/applications/{reference}/statement`: an application's transfers, newest first.

use domain::records::{ApplicationRecord, Paged, StatementLine, TransferKind};
use domain::{BatchId, Transid};
use leptos::either::Either;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use leptos_router::hooks::use_query_map;
use serde::{Deserialize, Serialize};

use super::frame::{ApplicationFrame, reference_in_address};
use crate::client::call;
use crate::problem::Problem;
use crate::ui::{Loaded, Moment, Table};
#[cfg(feature = "ssr")]
use {super::data::owned, crate::portal_request::signed_in};

/// How many lines one page has.
#[cfg(feature = "ssr")]
const LINES: i64 = 25;

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatementView {
    application: ApplicationRecord,
    statement: Paged<StatementLine>,
    currency: String,
}

/// A page of the statement of one of the account's applications.
///
/// # Errors
/// When nobody is signed in, the application isn't the account's, the cursor isn't one that was
/// given out, or the service fails.
#[server(prefix = "/fn", endpoint = "application-statement", input = GetUrl)]
pub async fn load_statement(
    reference: String,
    #[server(default)] cursor: Option<String>,
) -> Result<StatementView, Problem> {
    let (current, account) = signed_in().await?;
    let service = current.service();
    let application = owned(service, account.id, &reference).await?;
    let statement = service
        .statement(account.id, application.reference, cursor.as_deref(), LINES)
        .await?;
    Ok(StatementView {
        application,
        statement,
        currency: current.site().currency.clone(),
    })
}

#[component]
pub fn StatementPage() -> impl IntoView {
    let reference = reference_in_address();
    let query = use_query_map();
    let cursor = Memo::new(move |_| query.with(|query| query.get("cursor")));
    let data = Resource::new(
        move || (reference.get(), cursor.get()),
        |(reference, cursor)| call(LoadStatement { reference, cursor }),
    );
    view! { <Loaded data render=|data| view! { <Content data/> }/> }
}

#[component]
fn Content(data: StatementView) -> impl IntoView {
    let page = format!("/applications/{}/statement", data.application.reference);
    view! {
        <ApplicationFrame application=data.application at="Statement">
            {statement(&page, "/reports/", data.statement, &data.currency)}
        </ApplicationFrame>
    }
}

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
        .column("Type", |line| kind(line.kind).0)
        .styled("key", "Reference", move |line| subject(line, subjects))
        .money("Amount", currency, |line| {
            format!("{}{}", kind(line.kind).1, line.amount.shown())
        })
        .money("Balance", currency, |line| line.balance_after.shown())
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
