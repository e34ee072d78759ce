//! `/support/deposits`: lists of deposits. The first list holds the unmatched deposits, with the
//! applications that their payers may have meant.

use domain::decision::DepositList;
use domain::records::{DepositCase, DepositRecord, Paged};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::assign::{DECIDED, DepositDone, DepositNotice, assign_form, suggestion};
use super::links::{application_link, deposit_link, deposit_path};
use crate::page_data::PageData;
#[cfg(feature = "ssr")]
use crate::portal_request::staff;
use crate::problem::Problem;
use crate::ui::{BUTTONS, Loaded, Page, Table, next_link, parameter, tabs};

/// The number of deposits on a page.
#[cfg(feature = "ssr")]
const DEPOSITS: i64 = 25;

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DepositsView {
    list: DepositList,
    deposits: Paged<DepositCase>,
    currency: String,
    /// The deposit that was just assigned or returned.
    done: Option<DepositDone>,
}

/// Loads a page of deposits for staff.
#[server(prefix = "/fn", endpoint = "support-deposits", input = GetUrl)]
pub async fn load_support_deposits(
    #[server(default)] list: DepositList,
    #[server(default)] cursor: Option<String>,
    #[server(default)] decided: String,
) -> Result<DepositsView, Problem> {
    let (current, _) = staff().await?;
    let money = (current.service()).money();
    let deposits = money.deposit_list(list, cursor.as_deref(), DEPOSITS).await?;
    let done = DepositDone::load(&current, decided).await?;
    Ok(DepositsView { list, deposits, currency: current.site().currency.clone(), done })
}

#[component]
pub fn DepositsPage() -> impl IntoView {
    let (list, cursor, decided) = (parameter("list"), parameter("cursor"), parameter(DECIDED));
    let data = PageData::new(move || LoadSupportDeposits {
        list: list.get().and_then(|list| DepositList::parse(&list)).unwrap_or_default(),
        cursor: cursor.get(),
        decided: decided.get().unwrap_or_default(),
    });
    view! { <Loaded data render=|data| view! { <Deposits data/> }/> }
}

#[component]
fn Deposits(data: DepositsView) -> impl IntoView {
    let DepositsView { list, deposits, currency, done } = data;
    let address = |list: DepositList| format!("/support/deposits?list={}", list.as_str());
    let lists = [(DepositList::Unmatched, "Unmatched"), (DepositList::All, "All")]
        .map(|(each, title)| (address(each), title, each == list));
    view! {
        <Page title="Deposits">
            <DepositNotice done is_next=false/>
            <p><a href="/support/import">"Import a bank statement"</a></p>
            {tabs("Lists of deposits", lists)}
            {listed(list, &deposits.items, &currency)}
            {next_link(&address(list), deposits.next, "More deposits")}
        </Page>
    }
}

fn listed(list: DepositList, deposits: &[DepositCase], currency: &str) -> AnyView {
    let none = match list {
        DepositList::Unmatched => "Every deposit is assigned to an application.",
        DepositList::All => "There is no deposit.",
    };
    Table::wide(deposits)
        .column("Bank ID and reference as written", |case| {
            let DepositRecord { bank_id, reference, .. } = &case.deposit;
            view! {
                <div class="one-line" title=bank_id.clone()>{deposit_link(bank_id)}</div>
                <div class="fine one-line" title=reference.clone()>{reference.clone()}</div>
                {closed_mark(case.account_closed)}
            }
        })
        .column("Payer and purpose", |case| payer_and_purpose(&case.deposit))
        .money("Amount", currency, |case| case.deposit.amount.shown())
        .styled("figures", "Received (UTC)", |case| {
            // The time is rarely needed. It is in the tooltip, and on the deposit's page.
            let at = case.deposit.received_at;
            let text = at.to_table();
            let day = text.split(' ').next().unwrap_or_default().to_owned();
            let paid_on = case.deposit.paid_on.clone().map(|day| {
                view! { <div class="fine">{format!("Paid on {day}")}</div> }
            });
            view! {
                <time datetime=at.to_string() title=format!("{text} UTC")>{day}</time>
                {paid_on}
            }
        })
        .styled(BUTTONS, "Application", |case| {
            if case.deposit.is_unmatched() { actions(case) } else { receiver(&case.deposit) }
        })
        .in_region_or("Deposits", none)
}

/// Renders the ways to assign an unmatched deposit: to a suggested application, or to one whose
/// reference staff type. Both lead to a page that asks for confirmation.
fn actions(case: &DepositCase) -> AnyView {
    let bank_id = case.deposit.bank_id.clone();
    let suggested = case.suggestions.first().map(|reference| suggestion(&bank_id, *reference));
    // The deposit's page has all suggestions. A row has room for one.
    let more = case.suggestions.len().saturating_sub(1);
    let more = (more > 0).then(|| {
        view! { <a href=deposit_path(&bank_id)>{format!("{more} more")}</a> }
    });
    view! {
        {suggested}
        {more}
        " "
        {assign_form(&bank_id, "")}
    }
    .into_any()
}

/// Says why an unmatched payment isn't credited although its reference is known.
pub fn closed_mark(account_closed: bool) -> impl IntoView {
    account_closed.then(|| view! { <div class="fine">"Account closed"</div> })
}

/// Renders who got the money of a deposit.
pub fn receiver(deposit: &DepositRecord) -> AnyView {
    match deposit.assigned_to {
        Some(reference) => application_link(reference).into_any(),
        None if deposit.returned.is_some() => "returned to the bank".into_any(),
        None => "unmatched".into_any(),
    }
}

/// Renders the payer and the purpose of a deposit.
pub fn payer_and_purpose(deposit: &DepositRecord) -> impl IntoView + use<> {
    details(deposit.payer.as_deref(), deposit.purpose.as_deref())
}

/// Renders the payer and the purpose that a bank statement names.
pub fn details(payer: Option<&str>, purpose: Option<&str>) -> impl IntoView + use<> {
    let line =
        |text: &str| view! { <div class="one-line" title=text.to_owned()>{text.to_owned()}</div> };
    view! { {payer.map(line)} {purpose.map(line)} }
}
