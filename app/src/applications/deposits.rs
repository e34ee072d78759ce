//! How to make a deposit: the section of an application's page, `/applications/{reference}/slip`, the
//! slip to print, and `/applications/{reference}/deposits/{bank_id}`, the receipt of a deposit.

use domain::records::DepositRecord;
use domain::{Money, Reference};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use crate::account::BILLING_PATH;
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{DateTime, Fact, Loaded, Page, Table, in_path, in_zone, optional_fact};
#[cfg(feature = "ssr")]
use {
    super::application_view::owned, crate::portal_request::CurrentRequest,
    crate::portal_request::signed_in, crate::problem::Cause, domain::records::AccountRecord,
};

/// The amounts in micro-units whose worth in messages a slip shows.
const AMOUNTS: [i64; 3] = [10_000_000, 50_000_000, 100_000_000];

/// How an application's owner pays.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Payment {
    /// The payee and how to pay, as lines of text.
    pub instructions: Option<String>,
    /// How long a bank transfer takes.
    pub takes: Option<String>,
    /// The price of a page to a local number.
    pub local_price: Money,
    pub currency: String,
}

/// The two sides of a receipt or a statement, as lines of text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Parties {
    pub operator: Vec<String>,
    pub customer: Vec<String>,
}

#[cfg(feature = "ssr")]
impl Parties {
    /// Returns the operator and an account. An account without details has its email.
    pub async fn of(current: &CurrentRequest, account: &AccountRecord) -> Result<Self, Problem> {
        let details = current.service().accounts().billing_details(account.id).await?;
        let mut customer = details.lines();
        customer.push(account.email.clone());
        let operator = current.site().operator_details.as_deref().unwrap_or("Heliograph");
        Ok(Self { operator: operator.lines().map(str::to_owned).collect(), customer })
    }
}

/// The data of the slip.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SlipView {
    reference: Reference,
    payment: Payment,
}

/// Loads the deposit slip of one of the account's applications.
#[server(prefix = "/fn", endpoint = "deposit-slip", input = GetUrl)]
pub async fn load_slip(reference: String) -> Result<SlipView, Problem> {
    let (current, account) = signed_in().await?;
    let application = owned(current.service(), account.id, &reference).await?;
    let site = current.site();
    let payment = Payment {
        instructions: site.payment_instructions.clone(),
        takes: site.deposit_time.clone(),
        local_price: current.service().money().price_list().await?.prices.local,
        currency: site.currency.clone(),
    };
    Ok(SlipView { reference: application.reference, payment })
}

/// The data of a receipt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReceiptView {
    reference: Reference,
    deposit: DepositRecord,
    parties: Parties,
    currency: String,
}

/// Loads the receipt of a deposit of one of the account's applications.
#[server(prefix = "/fn", endpoint = "deposit-receipt", input = GetUrl)]
pub async fn load_receipt(reference: String, bank_id: String) -> Result<ReceiptView, Problem> {
    let (current, account) = signed_in().await?;
    let application = owned(current.service(), account.id, &reference).await?;
    let deposit = current.service().money().deposit(&bank_id).await?;
    let is_its_own = |deposit: &DepositRecord| deposit.assigned_to == Some(application.reference);
    Ok(ReceiptView {
        reference: application.reference,
        deposit: deposit.filter(is_its_own).ok_or(Cause::NotFound)?,
        parties: Parties::of(&current, &account).await?,
        currency: current.site().currency.clone(),
    })
}

#[component]
pub fn DepositSlipPage() -> impl IntoView {
    let reference = in_path("reference");
    let data = PageData::new(move || LoadSlip { reference: reference.get() });
    view! { <Loaded data render=|data| view! { <Slip data/> }/> }
}

#[component]
fn Slip(data: SlipView) -> impl IntoView {
    let SlipView { reference, payment } = data;
    view! {
        <Page title=format!("Deposit slip for application {reference}")>
            {back(reference)}
            {how_to_pay(reference, &payment)}
            <PrintHint/>
        </Page>
    }
}

#[component]
pub fn ReceiptPage() -> impl IntoView {
    let (reference, bank_id) = (in_path("reference"), in_path("bank_id"));
    let data =
        PageData::new(move || LoadReceipt { reference: reference.get(), bank_id: bank_id.get() });
    view! { <Loaded data render=|data| view! { <Receipt data/> }/> }
}

#[component]
fn Receipt(data: ReceiptView) -> impl IntoView {
    let ReceiptView { reference, deposit, parties, currency } = data;
    view! {
        <Page title="Receipt">
            {back(reference)}
            {parties_view(parties)}
            <dl class="facts">
                <Fact term="Amount" class="figures">
                    {format!("{} {currency}", deposit.amount.shown())}
                </Fact>
                {optional_fact("Paid on", "figures", deposit.paid_on)}
                <Fact term=in_zone("Received (UTC)") class="figures">
                    <DateTime at=deposit.received_at/>
                </Fact>
                <Fact term="Application" class="key">{reference.to_string()}</Fact>
                <Fact term="Bank ID" class="key">{deposit.bank_id}</Fact>
                <Fact term="Reference as written">{deposit.reference}</Fact>
                {optional_fact("Payer", "", deposit.payer)}
            </dl>
            <PrintHint/>
        </Page>
    }
}

fn back(reference: Reference) -> impl IntoView {
    let href = format!("/applications/{reference}");
    view! { <p class="back not-printed"><a href=href>{format!("Application {reference}")}</a></p> }
}

#[component]
fn PrintHint() -> impl IntoView {
    view! {
        <p class="fine not-printed">
            "Print this page, or save it as PDF with your browser's print command."
        </p>
    }
}

/// Renders the operator and the customer.
pub fn parties_view(parties: Parties) -> impl IntoView {
    let lines = |lines: Vec<String>| {
        lines.into_iter().map(|line| view! { <div>{line}</div> }).collect_view()
    };
    view! {
        <dl class="facts parties">
            <Fact term="From">{lines(parties.operator)}</Fact>
            <Fact term="To">{lines(parties.customer)}</Fact>
        </dl>
        <p class="not-printed"><a href=BILLING_PATH>"Change your name and address"</a></p>
    }
}

/// Renders whom to pay, with which reference, how long it takes, and what amounts buy.
pub fn how_to_pay(reference: Reference, payment: &Payment) -> impl IntoView + use<> {
    let lines = payment.instructions.as_deref().map(|text| {
        let lines = text.lines().map(|line| view! { <li>{line.to_owned()}</li> });
        view! { <ul>{lines.collect_view()}</ul> }
    });
    let takes = payment.takes.as_ref().map(|takes| {
        view! { <p>{format!("A transfer usually takes {takes}.")}</p> }
    });
    view! {
        {lines}
        <p>
            "Deposit by bank transfer, and write "
            <strong class="key">{reference.to_string()}</strong>
            " as the payment's reference. The amount is added to the balance when it has arrived. \
             Deposits aren't refundable."
        </p>
        {takes}
        {worth(payment)}
    }
}

/// Renders how many messages some amounts buy.
fn worth(payment: &Payment) -> AnyView {
    let price = payment.local_price.micros().max(1);
    Table::narrow(&AMOUNTS)
        .money("Deposit", &payment.currency, |amount| Money::from_micros(*amount).shown())
        .amount("Local messages of 1 page", move |amount| crate::reports::grouped(amount / price))
        .in_region("What a deposit buys")
}
