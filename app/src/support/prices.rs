//! `/support/prices`: the prices, when they come into force, and the forms that change them.

use domain::records::{NumberPrice, PriceChangeRecord, PriceTable};
use domain::{PriceChange, Timestamp};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::links::named_link;
use crate::page_data::PageData;
use crate::price_table::listed;
use crate::problem::Problem;
use crate::ui::{
    DateTime, Field, FormState, Loaded, Page, PostForm, StepUpField, SubmitButton, Table, parameter,
};
#[cfg(feature = "ssr")]
use {
    super::desk::APPROVALS_PATH,
    crate::portal_request::{staff, step_up},
    crate::problem::{Cause, Filter},
    domain::approval::StaffAct,
    domain::{Money, Number, Prefix, Prices, Refusal},
};

/// The number of changes that the page shows.
#[cfg(feature = "ssr")]
const CHANGES: usize = 100;

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PricesView {
    table: PriceTable,
    changes: Vec<PriceChangeRecord>,
    /// The price of the number that staff looked up, or why it can't be shown.
    asked: Option<Result<NumberPrice, Problem>>,
}

/// Loads the prices for staff, and the price of a number if one is given.
#[server(prefix = "/fn", endpoint = "support-prices", input = GetUrl)]
pub async fn load_support_prices(
    #[server(default)] number: Option<String>,
) -> Result<PricesView, Problem> {
    let (current, _) = staff().await?;
    let service = current.service();
    let typed = number.filter(|number| !number.trim().is_empty());
    let asked = match typed.map(|number| Number::parse(number.trim())) {
        None => None,
        Some(Ok(number)) => Some(Ok(service.money().price_of(&number).await?)),
        Some(Err(_)) => Some(Err(Cause::Filter(Filter::Number).into())),
    };
    let mut changes = service.money().price_changes().await?;
    changes.truncate(CHANGES);
    Ok(PricesView { table: service.money().price_table().await?, changes, asked })
}

/// Sets the base prices from the time `from` on, or at once if `from` is empty.
#[server(prefix = "/fn", endpoint = "set-base-prices")]
pub async fn set_base_prices(
    local: String,
    international: String,
    #[server(default)] from: String,
    #[server(default)] credential: String,
) -> Result<(), Problem> {
    let keep = |problem: Problem| {
        problem.typed("local", &local).typed("international", &international).typed("from", &from)
    };
    let change = || {
        let prices = Prices::new(price(&local)?, price(&international)?);
        Ok(PriceChange::Base(prices.map_err(Refusal::from)?))
    };
    set(change(), &from, &credential).await.map_err(keep)
}

/// Sets or removes the price of a prefix from the time `prefix_from` on, or at once if
/// `prefix_from` is empty.
#[server(prefix = "/fn", endpoint = "set-prefix-price")]
pub async fn set_prefix_price(
    prefix: String,
    #[server(default)] price: String,
    #[server(default)] prefix_from: String,
    #[server(default)] action: String,
    #[server(default)] credential: String,
) -> Result<(), Problem> {
    let keep = |problem: Problem| {
        problem.typed("prefix", &prefix).typed("price", &price).typed("prefix_from", &prefix_from)
    };
    let change = || {
        let prefix = Prefix::parse(&prefix).map_err(Refusal::from)?;
        let price = match action.as_str() {
            REMOVE => None,
            _ => Some(self::price(&price)?),
        };
        Ok(PriceChange::Prefix(prefix, price))
    };
    set(change(), &prefix_from, &credential).await.map_err(keep)
}

const SET: &str = "set";
const REMOVE: &str = "remove";

/// Stores a change after step-up authentication, or requests its approval.
#[cfg(feature = "ssr")]
async fn set(
    change: Result<PriceChange, Refusal>,
    from: &str,
    credential: &str,
) -> Result<(), Problem> {
    let (current, account) = staff().await?;
    let from = match from.trim() {
        "" => None,
        text => Some(Timestamp::parse_typed(text).ok_or(Cause::from(Refusal::TimeInvalid))?),
    };
    let change = change.map_err(Cause::from)?;
    step_up(&current, &account, credential).await?;
    let act = StaffAct::SetPrice { change, from };
    if !current.service().support().act(account.id, act).await? {
        leptos_axum::redirect(APPROVALS_PATH);
    }
    Ok(())
}

#[cfg(feature = "ssr")]
fn price(text: &str) -> Result<Money, Refusal> {
    Money::parse(text.trim()).map_err(|_| Refusal::PriceInvalid)
}

#[derive(Clone, Copy)]
struct Forms {
    base: FormState,
    prefix: FormState,
}

#[component]
pub fn SupportPricesPage() -> impl IntoView {
    let forms = Forms {
        base: FormState::new::<SetBasePrices>("base-prices-alert"),
        prefix: FormState::new::<SetPrefixPrice>("prefix-price-alert"),
    };
    let number = parameter("number");
    let data = PageData::new(move || {
        forms.base.accepted.track();
        forms.prefix.accepted.track();
        LoadSupportPrices { number: number.get() }
    });
    let render = move |data| view! { <Contents data number=number.get_untracked() forms/> };
    view! { <Loaded data render/> }
}

#[component]
fn Contents(data: PricesView, number: Option<String>, forms: Forms) -> impl IntoView {
    let PricesView { table, changes, asked } = data;
    let currency = table.currency.clone();
    let coming = listed(&table.coming, &currency)
        .in_region_or("Prices that are set for later", "No change is set for later.");
    view! {
        <Page title="Prices">
            <p class="lead">
                "A message costs its pages times the price of its number. For an international \
                 number, the longest matching prefix with a price decides."
            </p>
            <h2>"In force"</h2>
            {listed(&table.in_force, &currency).in_region("Prices in force")}
            <h2>"Set for later"</h2>
            {coming}
            <Lookup number asked/>
            <BaseForm currency=currency.clone() form=forms.base/>
            <PrefixForm currency=currency.clone() form=forms.prefix/>
            <h2>"History"</h2>
            {history(&changes, &currency)}
        </Page>
    }
}

/// Renders the price of a number, and the reason for it.
#[component]
fn Lookup(number: Option<String>, asked: Option<Result<NumberPrice, Problem>>) -> impl IntoView {
    let (answer, problem) = match asked {
        Some(Ok(answer)) => (Some(answer), None),
        Some(Err(problem)) => (None, Some(problem)),
        None => (None, None),
    };
    let form = FormState::plain("lookup-alert", problem);
    let answer = answer.map(|answer| {
        let NumberPrice { price, rule, currency, why } = answer;
        let costs = format!("A page costs {} {currency} by the rule ", price.per_page.shown());
        view! { <p class="notice">{costs} <code>{rule}</code> {format!(". {why}")}</p> }
    });
    view! {
        <h2>"Look up the price of a number"</h2>
        <form class="form" method="get" action="/support/prices" role="search" aria-label="Price of a number">
            <crate::ui::FormAlert form/>
            <Field
                label="Number"
                name="number"
                hint="Exactly 8 digits are a local number. Other numbers, and those after a +, are \
                      international."
                value=number.unwrap_or_default()
                required=true
                form
            />
            <SubmitButton label="Look up" form/>
        </form>
        <div role="status">{answer}</div>
    }
}

/// The hint that says how to write a time.
const FROM_HINT: &str = "Like 2026-12-01 or 2026-12-01 08:30. Leave the field empty to begin now.";

#[component]
fn BaseForm(currency: String, form: FormState) -> impl IntoView {
    let hint = format!("In {currency} per page, like 0.05.");
    view! {
        <h2>"Base prices"</h2>
        <PostForm form>
            <Field label="Local numbers" name="local" hint=hint.clone() required=true form/>
            <Field label="International numbers" name="international" hint required=true form/>
            <Field label="Base prices from (UTC)" name="from" hint=FROM_HINT form/>
            <StepUpField form/>
            <SubmitButton label="Set base prices" form/>
        </PostForm>
    }
}

#[component]
fn PrefixForm(currency: String, form: FormState) -> impl IntoView {
    view! {
        <h2>"Price of a prefix"</h2>
        <PostForm form>
            <Field
                label="Prefix"
                name="prefix"
                hint="The digits with which international numbers begin, like 27."
                required=true
                form
            />
            <Field
                label="Price"
                name="price"
                hint=format!("In {currency} per page, more than a local number costs.")
                form
            />
            <Field label="Prefix from (UTC)" name="prefix_from" hint=FROM_HINT form/>
            <StepUpField form/>
            <div class="buttons">
                <SubmitButton label="Set price" form field=("action", SET)/>
                <SubmitButton label="Remove price" form field=("action", REMOVE)/>
            </div>
        </PostForm>
    }
}

fn history(changes: &[PriceChangeRecord], currency: &str) -> AnyView {
    let currency = currency.to_owned();
    Table::wide(changes)
        .time("Set (UTC)", |change| change.set_at)
        .column("By", |change| named_link(&change.set_by))
        .column("What", move |change| what(&change.change, &currency))
        .styled("figures", "From (UTC)", |change| time(change.from))
        .in_region("History of prices")
}

fn time(at: Timestamp) -> impl IntoView + use<> {
    view! { <DateTime at/> }
}

fn what(change: &PriceChange, currency: &str) -> String {
    match change {
        PriceChange::Base(prices) => format!(
            "Base prices: local {}, international {} {currency}",
            prices.local.shown(),
            prices.international.shown()
        ),
        PriceChange::Prefix(prefix, Some(price)) => {
            format!("Prefix {prefix}: {} {currency}", price.shown())
        }
        PriceChange::Prefix(prefix, None) => format!("Prefix {prefix}: removed"),
    }
}
