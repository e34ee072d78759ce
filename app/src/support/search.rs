//! `/support/search`: searches for one text among all kinds of records.

use domain::MessageStatus;
use domain::records::DepositRecord;
use domain::support::Found;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::accounts::accounts_table;
use super::deposits::{payer_and_purpose, receiver};
use super::links::{application_link, application_path, deposit_link};
use super::marked_email::MarkedEmail;
use super::masked::{ShowText, masked_table};
use crate::page_data::PageData;
#[cfg(feature = "ssr")]
use crate::portal_request::staff;
use crate::problem::Problem;
use crate::ui::{FormAlert, FormState, Loaded, Page, State, Table, parameter};

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchView {
    text: String,
    found: Found,
    currency: String,
}

#[server(prefix = "/fn", endpoint = "support-search", input = GetUrl)]
pub async fn load_support_search(#[server(default)] text: String) -> Result<SearchView, Problem> {
    let (current, _) = staff().await?;
    Ok(SearchView {
        found: current.service().support().desk_search(&text).await?,
        text,
        currency: current.site().currency.clone(),
    })
}

#[component]
pub fn SupportSearchPage() -> impl IntoView {
    let form = FormState::new::<ShowText>("text-alert");
    let text = parameter("q");
    let data = PageData::new(move || LoadSupportSearch { text: text.get().unwrap_or_default() });
    view! { <Loaded data render=move |data| view! { <Results data form/> }/> }
}

#[component]
fn Results(data: SearchView, form: FormState) -> impl IntoView {
    let SearchView { text, found, currency } = data;
    let nothing = (!text.is_empty() && found.is_empty())
        .then(|| view! { <p class="empty">"Nothing was found."</p> });
    let incomplete = found.incomplete.then(|| {
        view! {
            <p class="notice">
                "The search took too long, so it doesn't cover the messages of every application. \
                 Write an email or a reference before the number or request ID."
            </p>
        }
    });
    view! {
        <Page title="Search">
            <p class="lead">
                "Search for a part of an email, a reference, an application's name, a sender name, a \
                 payer or the purpose of a payment, or for a transaction ID, a batch ID or a bank \
                 ID. A number or a request ID finds messages of the last 7 days. To search all \
                 days, put an email or a reference before it: 123456 57000001."
            </p>
            <FormAlert form/>
            {nothing}
            {incomplete}
            {sections(&found, &currency, form)}
        </Page>
    }
}

/// Renders the results, with a section for each kind of record that was found.
fn sections(found: &Found, currency: &str, form: FormState) -> impl IntoView + use<> {
    let accounts =
        (!found.accounts.is_empty()).then(|| accounts_table(&found.accounts).in_region("Accounts"));
    let messages = (!found.messages.is_empty()).then(|| {
        masked_table(&found.messages, |(_, message)| message, form)
            .column("Application", |(owner, _)| application_link(owner.reference))
            .in_region("Messages")
    });
    view! {
        {titled("Accounts", accounts)}
        {titled("Applications", applications(found, currency))}
        {titled("Batches", batches(found))}
        {titled("Deposits", deposits(found, currency))}
        {titled("Messages", messages)}
    }
}

fn titled(title: &'static str, table: Option<AnyView>) -> impl IntoView {
    table.map(|table| {
        view! {
            <h2>{title}</h2>
            {table}
        }
    })
}

fn applications(found: &Found, currency: &str) -> Option<AnyView> {
    let table = Table::wide(&found.applications)
        .styled("key", "Reference", |(owner, _)| application_link(owner.reference))
        .column("Name", |(_, application)| application.display_name())
        .column("Account", |(owner, _)| view! { <MarkedEmail email=owner.email.clone()/> })
        .column("Category", |(_, application)| application.category.as_str())
        .state("Status", |(_, application)| State::from(application))
        .money("Balance", currency, |(_, application)| application.balance.shown());
    (!found.applications.is_empty()).then(|| table.in_region("Applications"))
}

fn batches(found: &Found) -> Option<AnyView> {
    let table = Table::wide(&found.batches)
        .styled("key", "Batch ID", |(owner, batch)| {
            let href = format!("{}#batches", application_path(owner.reference));
            view! { <a href=href>{batch.batchid.to_string()}</a> }
        })
        .time("Time (UTC)", |(_, batch)| batch.created_at)
        .state("Status", |(_, batch)| batch.status)
        .amount("Rows", |(_, batch)| batch.rows)
        .amount("Delivered", |(_, batch)| batch.counts.get(MessageStatus::Delivered))
        .column("Application", |(owner, _)| application_link(owner.reference));
    (!found.batches.is_empty()).then(|| table.in_region("Batches"))
}

fn deposits(found: &Found, currency: &str) -> Option<AnyView> {
    let table = Table::wide(&found.deposits)
        .styled("key", "Bank ID", |deposit: &DepositRecord| deposit_link(&deposit.bank_id))
        .time("Time (UTC)", |deposit| deposit.received_at)
        .column("Reference as written", |deposit| deposit.reference.clone())
        .column("Payer and purpose", payer_and_purpose)
        .money("Amount", currency, |deposit| deposit.amount.shown())
        .column("Application", receiver);
    (!found.deposits.is_empty()).then(|| table.in_region("Deposits"))
}
