//! `/support/prices`: the prices, when they come into force, and the forms that change them.

use domain::records::{NumberPrice, PriceChangeRecord, PriceTable};
use domain::{DeskAct, PriceChange, Timestamp};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::confirm::confirm_button;
use super::links::named_link;
use crate::page_data::PageData;
use crate::price_table::listed;
use crate::problem::Problem;
use crate::ui::{
    BUTTONS, Choice, DateTime, Field, FormState, Loaded, Page, PostForm, SubmitButton, Table,
    parameter,
};
#[cfg(feature = "ssr")]
use {
    super::confirm::CONFIRM_PATH,
    crate::portal_request::{redirect_to, staff},
    crate::problem::{Cause, Filter},
    crate::ui::address,
    domain::{Money, Month, Number, Prefix, PriceRequest, Prices, Refusal},
};

const PRICES_PATH: &str = "/support/prices";

/// The number of changes that the page shows.
#[cfg(feature = "ssr")]
const CHANGES: usize = 100;

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PricesView {
    table: PriceTable,
    changes: Vec<PriceChangeRecord>,
    /// The changes that aren't in force yet and aren't cancelled.
    coming: Vec<PriceChangeRecord>,
    /// The start of tomorrow and of the next month.
    presets: (Timestamp, Timestamp),
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
    let now = service.clock().now();
    let mut changes = service.money().price_changes().await?;
    let is_cancelled = |id| changes.iter().any(|change| change.change == PriceChange::Cancel(id));
    let is_coming = |change: &&PriceChangeRecord| {
        let is_cancel = matches!(change.change, PriceChange::Cancel(_));
        change.from > now && !is_cancel && !is_cancelled(change.id)
    };
    let mut coming: Vec<_> = changes.iter().filter(is_coming).cloned().collect();
    coming.sort_by_key(|change| change.from);
    changes.truncate(CHANGES);
    let table = service.money().price_table().await?;
    Ok(PricesView { table, changes, coming, presets: starts_after(now), asked })
}

/// Checks new base prices and opens their confirmation. They begin at the time `from` if
/// it isn't empty, else at the preset `when`.
#[server(prefix = "/fn", endpoint = "ask-base-prices")]
pub async fn check_base_prices(
    local: String,
    international: String,
    #[server(default)] when: String,
    #[server(default)] from: String,
) -> Result<(), Problem> {
    let keep = |problem: Problem| {
        let problem = problem.typed("local", &local).typed("international", &international);
        problem.typed("when", &when).typed("from", &from)
    };
    let change = || {
        let new = (price(&local, "local")?, price(&international, "international")?);
        let prices = Prices::new(new.0, new.1);
        Ok(PriceChange::Base(prices.map_err(Refusal::from).map_err(Cause::from)?))
    };
    open_confirmation(DeskAct::SetBasePrices, change, (&when, (&from, "from"))).await.map_err(keep)
}

/// Checks a new price of a prefix, or the removal of its price, and opens the confirmation.
#[server(prefix = "/fn", endpoint = "ask-prefix-price")]
pub async fn check_prefix_price(
    prefix: String,
    #[server(default)] price: String,
    #[server(default)] prefix_when: String,
    #[server(default)] prefix_from: String,
    #[server(default)] action: String,
) -> Result<(), Problem> {
    let keep = |problem: Problem| {
        let problem = problem.typed("prefix", &prefix).typed("price", &price);
        problem.typed("prefix_when", &prefix_when).typed("prefix_from", &prefix_from)
    };
    let removes = action == DeskAct::RemovePrice.as_str();
    let change = || {
        let prefix = Prefix::parse(prefix.trim()).map_err(Refusal::from).map_err(Cause::from)?;
        let price = if removes { None } else { Some(self::price(&price, "price")?) };
        Ok(PriceChange::Prefix(prefix, price))
    };
    let act = if removes { DeskAct::RemovePrice } else { DeskAct::SetPrice };
    open_confirmation(act, change, (&prefix_when, (&prefix_from, "prefix_from")))
        .await
        .map_err(keep)
}

/// Opens the confirmation of a price change, if the rules allow it.
#[cfg(feature = "ssr")]
async fn open_confirmation(
    act: DeskAct,
    change: impl Fn() -> Result<PriceChange, Problem> + Send,
    (when, (from, field)): (&str, (&str, &str)),
) -> Result<(), Problem> {
    let (current, _) = staff().await?;
    let change = change()?;
    let from = match from.trim() {
        "" => beginning(when, current.service().clock().now()),
        text => {
            let refused = || Problem::from(Cause::from(Refusal::TimeInvalid)).about(field);
            Some(Timestamp::parse_typed(text).ok_or_else(refused)?)
        }
    };
    current.service().money().price_steps(&change, from).await?;
    let subject = PriceRequest { change, from }.to_string();
    let parameters = [("act", act.as_str()), ("subject", subject.as_str()), ("next", PRICES_PATH)];
    redirect_to(&address(CONFIRM_PATH, parameters))
}

/// Returns the time that an option of the field When stands for, or `None` for now.
#[cfg(feature = "ssr")]
fn beginning(when: &str, now: Timestamp) -> Option<Timestamp> {
    let (tomorrow, first) = starts_after(now);
    match when {
        TOMORROW => Some(tomorrow),
        FIRST => Some(first),
        _ => None,
    }
}

/// Returns the start of the next day and of the next month, in UTC.
#[cfg(feature = "ssr")]
fn starts_after(now: Timestamp) -> (Timestamp, Timestamp) {
    (Timestamp::of_day(now.day() + 1), Month::of(now).next().start())
}

const TOMORROW: &str = "tomorrow";
const FIRST: &str = "first";

/// Parses the price in a field. A blank before or after it is ignored.
#[cfg(feature = "ssr")]
fn price(text: &str, field: &str) -> Result<Money, Problem> {
    let refused = |_| Problem::from(Cause::from(Refusal::PriceInvalid)).about(field);
    Money::parse(text.trim()).map_err(refused)
}

#[derive(Clone, Copy)]
struct Forms {
    base: FormState,
    prefix: FormState,
}

#[component]
pub fn SupportPricesPage() -> impl IntoView {
    let forms = Forms {
        base: FormState::new::<CheckBasePrices>("base-prices-alert"),
        prefix: FormState::new::<CheckPrefixPrice>("prefix-price-alert"),
    };
    let number = parameter("number");
    let data = PageData::new(move || LoadSupportPrices { number: number.get() });
    let render = move |data| view! { <Contents data number=number.get_untracked() forms/> };
    view! { <Loaded data render/> }
}

#[component]
fn Contents(data: PricesView, number: Option<String>, forms: Forms) -> impl IntoView {
    let PricesView { table, changes, coming, presets, asked } = data;
    let currency = table.currency.clone();
    let of_change = currency.clone();
    let coming = Table::wide(&coming)
        .column("What", move |change| what(&change.change, &of_change))
        .styled("figures", "From (UTC)", |change| time(change.from))
        .column("By", |change| named_link(&change.set_by))
        .styled(BUTTONS, "Action", |change| {
            let next = PRICES_PATH.to_owned();
            let id = change.id.to_string();
            confirm_button(DeskAct::CancelPrice, &id, id.clone(), next)
        })
        .in_region_or("Prices that are set for later", "No change is set for later.");
    view! {
        <Page title="Prices">
            <p class="lead">
                "A message costs its pages times the price of its number. For an international \
                 number, the longest matching prefix with a price decides."
            </p>
            <div class="pair">
                <div>
                    <h2>"In force"</h2>
                    {listed(&table.in_force, &currency).in_region("Prices in force")}
                </div>
                <div><Lookup number asked/></div>
            </div>
            <h2>"Set for later"</h2>
            {coming}
            <div class="pair">
                <div><BaseForm currency=currency.clone() presets form=forms.base/></div>
                <div><PrefixForm currency=currency.clone() presets form=forms.prefix/></div>
            </div>
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

/// Renders the fields for the time from which a price is in force: presets, and another time.
fn beginning_fields(
    when: &'static str,
    (label, from): (&'static str, &'static str),
    (tomorrow, first): (Timestamp, Timestamp),
    form: FormState,
) -> impl IntoView {
    let preset = |value: &str, text: &str| (value.to_owned(), text.to_owned());
    let at = |at: Timestamp| at.to_table().get(..16).unwrap_or_default().to_owned();
    let options = vec![
        preset("now", "Now"),
        preset(TOMORROW, &format!("Tomorrow 00:00 ({} UTC)", at(tomorrow))),
        preset(FIRST, &format!("On the 1st ({} UTC)", at(first))),
    ];
    view! {
        <Choice label="When" name=when options chosen=form.typed(when).unwrap_or_default()/>
        <Field
            label
            name=from
            kind="datetime-local"
            hint="Another time than above, in UTC. Leave this empty to use the choice above."
            form
        />
    }
}

#[component]
fn BaseForm(currency: String, presets: (Timestamp, Timestamp), form: FormState) -> impl IntoView {
    let hint = format!("In {currency} per page, like 0.05.");
    view! {
        <h2>"Base prices"</h2>
        <PostForm form>
            <Field label="Local numbers" name="local" hint=hint.clone() required=true form/>
            <Field label="International numbers" name="international" hint required=true form/>
            {beginning_fields("when", ("Base prices from (UTC)", "from"), presets, form)}
            <SubmitButton label=DeskAct::SetBasePrices.label() form/>
        </PostForm>
    }
}

#[component]
fn PrefixForm(currency: String, presets: (Timestamp, Timestamp), form: FormState) -> impl IntoView {
    let fields = ("Prefix from (UTC)", "prefix_from");
    let button = move |act: DeskAct, danger| {
        view! { <SubmitButton label=act.label() form danger field=("action", act.as_str())/> }
    };
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
            {beginning_fields("prefix_when", fields, presets, form)}
            <div class="buttons">
                {button(DeskAct::SetPrice, false)}
                {button(DeskAct::RemovePrice, true)}
            </div>
        </PostForm>
    }
}

fn history(changes: &[PriceChangeRecord], currency: &str) -> AnyView {
    let currency = currency.to_owned();
    Table::wide(changes)
        .column("Change", |change| change.id.to_string())
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
        PriceChange::Cancel(id) => format!("The change {id} is cancelled"),
    }
}
