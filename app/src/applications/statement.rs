//! `/applications/{reference}/statement`: an application's transfers, by day and month and as a
//! list.

use domain::ledger::TransferKind;
use domain::records::{
    ApplicationRecord, Paged, StatementDay, StatementLine, StatementMonth, StatementTotals,
};
use domain::{BatchId, Reference, Transid};
use leptos::either::Either;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use leptos_router::hooks::use_query_map;
use serde::{Deserialize, Serialize};

use super::deposits::{Parties, parties_view};
use super::frame::ApplicationFrame;
use super::statement_query::StatementQuery;
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{
    Downloads, Fact, Field, FormState, Loaded, SearchForm, Table, in_path, in_zone, pager, tabs,
};
#[cfg(feature = "ssr")]
use {
    super::application_view::owned, crate::portal_request::signed_in, domain::Month,
    service::Service, service::StatementFilter,
};

/// The path of the CSV file with the lines of an application's statement.
pub const STATEMENT_CSV_PATH: &str = "/applications/{reference}/statement.csv";
/// The maximum number of lines on a page.
#[cfg(feature = "ssr")]
const LINES: i64 = 25;

/// The page's data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatementView {
    application: ApplicationRecord,
    query: StatementQuery,
    shown: Shown,
    parties: Parties,
    currency: String,
}

/// The part of the statement that the page shows.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Shown {
    /// A month by day, and the transfers of its last day.
    Month {
        month: StatementMonth,
        /// Whether this is the current month or a later one. Then there is no link to a newer
        /// month.
        is_current: bool,
        last_day: Paged<StatementLine>,
    },
    /// A list of transfers, or the problem with its filters.
    List(Result<Paged<StatementLine>, Problem>),
}

/// Loads a page of the statement of one of the account's applications.
#[server(prefix = "/fn", endpoint = "application-statement", input = GetUrl)]
pub async fn load_statement(
    reference: String,
    #[server(default)] query: StatementQuery,
) -> Result<StatementView, Problem> {
    let (current, account) = signed_in().await?;
    let service = current.service();
    let application = owned(service, account.id, &reference).await?;
    let shown = if query.is_list() {
        Shown::List(match query.filter(LINES) {
            Ok(filter) => Ok(service
                .applications()
                .statement(account.id, application.reference, filter)
                .await?),
            Err(problem) => Err(problem),
        })
    } else {
        let now = service.clock().now();
        by_days(service, account.id, &application, query.month(now)?).await?
    };
    let parties = Parties::of(&current, &account).await?;
    let currency = current.site().currency.clone();
    Ok(StatementView { application, query, shown, parties, currency })
}

#[cfg(feature = "ssr")]
async fn by_days(
    service: &Service,
    account_id: i64,
    application: &ApplicationRecord,
    month: Month,
) -> Result<Shown, Problem> {
    let reference = application.reference;
    let found = service.applications().statement_month(account_id, reference, month).await?;
    let last_day = match found.days.first() {
        Some(last) => {
            let filter = StatementFilter {
                from: Some(last.day),
                to: Some(last.day.plus_ms(domain::timestamp::DAY_MS)),
                limit: LINES,
                ..StatementFilter::default()
            };
            service.applications().statement(account_id, reference, filter).await?
        }
        None => Paged { items: Vec::new(), next: None },
    };
    Ok(Shown::Month {
        is_current: month >= Month::of(service.clock().now()),
        month: found,
        last_day,
    })
}

#[component]
pub fn StatementPage() -> impl IntoView {
    let reference = in_path("reference");
    let query = use_query_map();
    let asked =
        Memo::new(move |_| query.with(|query| StatementQuery::read(|name| query.get(name))));
    let data =
        PageData::new(move || LoadStatement { reference: reference.get(), query: asked.get() });
    view! { <Loaded data render=|data| view! { <Content data/> }/> }
}

#[component]
fn Content(data: StatementView) -> impl IntoView {
    let StatementView { application, query, shown, parties, currency } = data;
    let page = format!("/applications/{}/statement", application.reference);
    let lists = lists(&page, &query);
    let content = match shown {
        Shown::Month { month, is_current, last_day } => {
            let reference = application.reference;
            by_day((reference, &page), &month, is_current, &last_day, &currency).into_any()
        }
        Shown::List(found) => list(&page, query, found, &currency).into_any(),
    };
    view! {
        <ApplicationFrame application at="Statement">
            <h2 id="statement">"Statement"</h2>
            {lists}
            {parties_view(parties)}
            {content}
        </ApplicationFrame>
    }
}

/// Links to the view by day, and to the list of all transfers and of each kind.
fn lists(page: &str, shown: &StatementQuery) -> impl IntoView + use<> {
    let list = |kind, name| (StatementQuery::list(kind), name);
    let lists = [
        (StatementQuery::default(), "By day"),
        list(None, "All"),
        list(Some(TransferKind::Deposit), "Deposits"),
        list(Some(TransferKind::Charge), "Charges"),
        list(Some(TransferKind::Release), "Releases"),
    ];
    let links = lists.map(|(query, name)| {
        let is_shown = query.is_list() == shown.is_list() && query.kind() == shown.kind();
        // Keep the selected days when switching lists.
        let query = if query.is_list() {
            StatementQuery { from: shown.from.clone(), to: shown.to.clone(), ..query }
        } else {
            query
        };
        (query.address(page), name, is_shown)
    });
    tabs("Transfers", links)
}

/// Shows a month by day, its totals, and the transfers of its last day.
fn by_day(
    (reference, page): (Reference, &str),
    month: &StatementMonth,
    is_current: bool,
    last_day: &Paged<StatementLine>,
    currency: &str,
) -> impl IntoView + use<> {
    let of = month.month;
    let days = Table::wide(&month.days)
        .column("Day (UTC)", |day| {
            let date = day.day.to_date();
            let href = StatementQuery::days(date.clone(), date.clone()).address(page);
            view! { <a href=href>{date}</a> }
        })
        .money("Deposits", currency, |day: &StatementDay| day.totals.deposits.shown())
        .money("Charges", currency, |day| day.totals.charges.shown())
        .money("Released", currency, |day| day.totals.releases.shown())
        .money("Balance", currency, |day| day.totals.closing.shown())
        .in_region_or("Days", "There are no transfers in this month.");
    let last = of.next().start().plus_ms(-1).to_date();
    let whole = StatementQuery::days(of.start().to_date(), last);
    let opened = month.days.first().map(|day| {
        let date = day.day.to_date();
        let all = StatementQuery::days(date.clone(), date.clone()).address(page);
        let more = last_day.next.is_some().then(|| {
            view! { <p><a href=all>"All transfers of this day"</a></p> }
        });
        view! {
            <section class="not-printed">
                <h3>"Transfers of " {date}</h3>
                {transfers(&last_day.items, "/reports/", currency)}
                {receipts(page, &last_day.items)}
                {more}
            </section>
        }
    });
    view! {
        <h3>{of.name()}</h3>
        <p>{format!("Application {reference}, amounts in {currency}. Days are UTC.")}</p>
        <p class="fine not-printed">
            "A batch is charged as a whole on the day of its acceptance, also if it is scheduled for \
             a later day. Overviews and reports count its messages when they are sent."
        </p>
        {months(page, month, is_current)}
        {facts(&month.totals, currency)}
        {days}
        <p class="not-printed">
            <a href=whole.address(page)>"All transfers of the month"</a>
            " "
            <Downloads href=whole.address(&csv_path(page))/>
        </p>
        {opened}
    }
}

/// Links to the previous and the next month.
fn months(page: &str, month: &StatementMonth, is_current: bool) -> impl IntoView + use<> {
    let link = |of: domain::Month, rel: &'static str, word: &str| {
        let query = StatementQuery { month: of.to_string(), ..StatementQuery::default() };
        let text = format!("{word}: {}", of.name());
        view! { <a href=query.address(page) rel=rel>{text}</a> }
    };
    let newer = (!is_current).then(|| link(month.month.next(), "prev", "Newer"));
    let older = month.has_older.then(|| link(month.month.previous(), "next", "Older"));
    view! { <p class="pager">{newer} {older}</p> }
}

fn facts(totals: &StatementTotals, currency: &str) -> impl IntoView + use<> {
    let fact = |term, amount: domain::Money| {
        let amount = format!("{} {currency}", amount.shown());
        view! { <Fact term class="figures">{amount}</Fact> }
    };
    view! {
        <dl class="facts">
            {fact("Opening balance", totals.opening)}
            {fact("Deposits", totals.deposits)}
            {fact("Charges", totals.charges)}
            {fact("Released", totals.releases)}
            {fact("Closing balance", totals.closing)}
        </dl>
    }
}

/// Shows a list of transfers with its filters.
fn list(
    page: &str,
    query: StatementQuery,
    found: Result<Paged<StatementLine>, Problem>,
    currency: &str,
) -> impl IntoView + use<> {
    let problem = found.as_ref().err().cloned();
    #[cfg(feature = "ssr")]
    if let Some(problem) = &problem {
        crate::portal_request::set_status(&problem.cause);
    }
    let found = found.ok().map(|found| {
        let address = |way: &str| {
            let query = StatementQuery { cursor: way.to_owned(), ..query.clone() };
            format!("{}#statement", query.address(page))
        };
        let whole = StatementQuery { cursor: String::new(), ..query.clone() };
        view! {
            <p class="not-printed">
                <Downloads href=whole.address(&csv_path(page))/>
            </p>
            {transfers(&found.items, "/reports/", currency)}
            {receipts(page, &found.items)}
            {pager("transfers", &query.cursor, found.next.as_deref(), address)}
        }
    });
    view! { {period(page, &query, problem)} {found} }
}

/// The form for the list's days.
fn period(page: &str, query: &StatementQuery, problem: Option<Problem>) -> impl IntoView + use<> {
    let form = FormState::plain("period-alert", problem);
    let (kind, from, to) = (query.kind.clone(), query.from.clone(), query.to.clone());
    view! {
        <SearchForm
            path=page.to_owned()
            label="Statement"
            button="Show these days"
            form
        >
            <input type="hidden" name="kind" value=kind/>
            <Field label="From (UTC)" name="from" kind="date" value=from form/>
            <Field label="To (UTC)" name="to" kind="date" value=to form/>
        </SearchForm>
    }
}

/// Returns the path of the CSV file of a statement page.
fn csv_path(page: &str) -> String {
    format!("{page}.csv")
}

/// Links to older transfers, if there are any.
fn older(address: &str, cursor: Option<String>) -> impl IntoView + use<> {
    cursor.map(|cursor| {
        let separator = if address.contains('?') { '&' } else { '?' };
        let cursor = leptos_router::location::Url::escape(&cursor);
        let href = format!("{address}{separator}cursor={cursor}#statement");
        view! { <p><a href=href rel="next">"Older transfers"</a></p> }
    })
}

/// Renders the statement's table, or a sentence if there are no transfers. `page` is the page's
/// path. The link of a message or a batch is `subjects` followed by the ID.
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

/// Renders links to the receipts of the deposits in a list.
fn receipts(page: &str, lines: &[StatementLine]) -> impl IntoView + use<> {
    let of_application = page.trim_end_matches("/statement").to_owned();
    let deposits = lines.iter().filter(|line| line.kind == TransferKind::Deposit);
    let items: Vec<_> = deposits
        .map(|line| {
            let bank_id = leptos_router::location::Url::escape(&line.subject);
            let href = format!("{of_application}/deposits/{bank_id}");
            view! { <li><a href=href>{format!("Receipt of {}", line.subject)}</a></li> }
        })
        .collect();
    (!items.is_empty()).then(|| view! { <ul class="not-printed">{items}</ul> })
}

fn transfers(lines: &[StatementLine], subjects: &'static str, currency: &str) -> AnyView {
    Table::wide(lines)
        .time(in_zone("Time (UTC)"), |line| line.at)
        .column("Type", |line| kind(line.kind).0)
        .styled("key", "Reference", move |line| subject(line, subjects))
        .money("Amount", currency, |line| format!("{}{}", kind(line.kind).1, line.amount.shown()))
        .money("Balance", currency, |line| line.balance_after.shown())
        .in_region_or("Transfers", "There are no such transfers yet.")
}

/// Returns the name of a kind of transfer, and the sign of its amount.
const fn kind(kind: TransferKind) -> (&'static str, &'static str) {
    match kind {
        TransferKind::Deposit => ("Deposit", "+"),
        // The minus sign is as wide as the plus sign.
        TransferKind::Charge => ("Charge", "\u{2212}"),
        TransferKind::Release => ("Release", "+"),
        // Between our own ledger accounts, so on no application's statement.
        TransferKind::Unmatched | TransferKind::Settle | TransferKind::Return => {
            (kind.as_str(), "")
        }
    }
}

/// Shows the message, batch or payment of a transfer. Messages and batches get a link.
fn subject(line: &StatementLine, subjects: &'static str) -> impl IntoView + use<> {
    let subject = line.subject.clone();
    if Transid::parse(&subject).is_none() && BatchId::parse(&subject).is_none() {
        return Either::Right(view! { <span>{subject}</span> });
    }
    let href = format!("{subjects}{subject}");
    Either::Left(view! { <a href=href>{subject}</a> })
}
