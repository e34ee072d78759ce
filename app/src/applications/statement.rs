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
use {super::data::owned, crate::portal_request::signed_in, service::StatementFilter};

/// How many lines one page has.
#[cfg(feature = "ssr")]
const LINES: i64 = 25;

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatementView {
    application: ApplicationRecord,
    /// The kind of the transfers, if only one was asked for.
    kind: Option<TransferKind>,
    /// Whether there are newer transfers, which aren't among these.
    has_newer: bool,
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
    #[server(default)] kind: Option<TransferKind>,
    #[server(default)] cursor: Option<String>,
) -> Result<StatementView, Problem> {
    let (current, account) = signed_in().await?;
    let service = current.service();
    let application = owned(service, account.id, &reference).await?;
    let filter = StatementFilter {
        kind,
        cursor: cursor.as_deref(),
        limit: LINES,
    };
    let statement = service
        .statement(account.id, application.reference, filter)
        .await?;
    Ok(StatementView {
        application,
        kind,
        has_newer: cursor.is_some(),
        statement,
        currency: current.site().currency.clone(),
    })
}

#[component]
pub fn StatementPage() -> impl IntoView {
    let reference = reference_in_address();
    let query = use_query_map();
    let asked = Memo::new(move |_| {
        let (kind, cursor) = query.with(|query| (query.get("kind"), query.get("cursor")));
        (kind.as_deref().and_then(TransferKind::parse), cursor)
    });
    let data = Resource::new(
        move || (reference.get(), asked.get()),
        |(reference, (kind, cursor))| {
            call(LoadStatement {
                reference,
                kind,
                cursor,
            })
        },
    );
    view! { <Loaded data render=|data| view! { <Content data/> }/> }
}

#[component]
fn Content(data: StatementView) -> impl IntoView {
    let page = format!("/applications/{}/statement", data.application.reference);
    let newest = data.has_newer.then(|| {
        let href = address(&page, data.kind);
        view! { <p><a href=href>"Newest transfers"</a></p> }
    });
    view! {
        <ApplicationFrame application=data.application at="Statement">
            <h2 id="statement">"Statement"</h2>
            {kinds(&page, data.kind)}
            {newest}
            {transfers(&data.statement.items, "/reports/", &data.currency)}
            {older(&address(&page, data.kind), data.statement.next)}
        </ApplicationFrame>
    }
}

/// The page with the newest transfers of a kind.
fn address(page: &str, kind: Option<TransferKind>) -> String {
    match kind {
        Some(kind) => format!("{page}?kind={kind}"),
        None => page.to_owned(),
    }
}

/// Links to the lists of all transfers and of each kind.
fn kinds(page: &str, shown: Option<TransferKind>) -> impl IntoView + use<> {
    let lists = [
        (None, "All"),
        (Some(TransferKind::Deposit), "Deposits"),
        (Some(TransferKind::Charge), "Charges"),
        (Some(TransferKind::Release), "Releases"),
    ];
    let links = lists
        .map(|(list, name)| {
            let current = (list == shown).then_some("page");
            view! { <li><a href=address(page, list) aria-current=current>{name}</a></li> }
        })
        .collect_view();
    view! {
        <nav class="tabs" aria-label="Transfers">
            <ul>{links}</ul>
        </nav>
    }
}

/// The link to the transfers before these, if there are some.
fn older(address: &str, cursor: Option<String>) -> impl IntoView + use<> {
    cursor.map(|cursor| {
        let separator = if address.contains('?') { '&' } else { '?' };
        let cursor = leptos_router::location::Url::escape(&cursor);
        let href = format!("{address}{separator}cursor={cursor}#statement");
        view! { <p><a href=href rel="next">"Older transfers"</a></p> }
    })
}

/// The statement's table, or a sentence that there is no transfer yet, on the page with this path.
/// The link of a message or a batch is `subjects` and its id.
pub fn statement(
    page: &str,
    subjects: &'static str,
    statement: Paged<StatementLine>,
    currency: &str,
) -> impl IntoView + use<> {
    view! {
        <h2 id="statement">"Statement"</h2>
        {transfers(&statement.items, subjects, currency)}
        {older(page, statement.next)}
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
        .in_region_or("Transfers", "There is no such transfer yet.")
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
