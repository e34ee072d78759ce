//! The text counter. While a text is typed, it shows how the text will be sent and what it will
//! cost. Nothing is sent. The browser counts if scripts run. Without scripts, the form is posted
//! and the server counts.

use domain::message::{InvalidMessage, MessageText as Checked, PAGE_CHARS, units_left};
use domain::number::LOCAL_DIGITS;
use domain::pricing::cost_at;
use domain::records::PriceTable;
use domain::{HomeCountry, Kind, Number, NumberWarning, PricesInForce};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use crate::page_data::PageData;
#[cfg(feature = "ssr")]
use crate::portal_request::current_request;
use crate::problem::Problem;
use crate::reports::{MessageText, count};
use crate::ui::{Loaded, Table, text_in_area};

/// The path that the form posts to without scripts. The page at this path has the counter.
pub const COUNT_PATH: &str = "/docs";
/// The ID of the counter on its page.
pub const ANCHOR: &str = "counter";

/// The local number in the table of number formats.
const LOCAL: &str = "57000001";

/// The text and number typed into the counter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TypedText {
    pub message: String,
    pub number: String,
}

/// The prices and limits that the counter needs, and the text that was posted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CounterData {
    table: PriceTable,
    home: HomeCountry,
    pages_max: usize,
    typed: TypedText,
}

/// Loads the counter's data. Needs no sign-in.
#[server(prefix = "/fn", endpoint = "counter", input = GetUrl)]
pub async fn load_counter() -> Result<CounterData, Problem> {
    let current = current_request()?;
    let request = use_context::<http::request::Parts>();
    let typed = request.and_then(|request| request.extensions.get::<TypedText>().cloned());
    Ok(CounterData {
        table: current.service().money().price_table().await?,
        home: current.site().home.clone(),
        pages_max: current.site().message_pages_max,
        typed: typed.unwrap_or_default(),
    })
}

/// The counter. The page loads the counter's data together with its own, so that both appear at
/// once.
#[component]
pub fn TextCounter(data: PageData<CounterData>) -> impl IntoView {
    view! {
        <h2 id=ANCHOR>"Count a text"</h2>
        <p>"See how a text will be sent and what it costs. Nothing is sent."</p>
        <Loaded data render=|data| view! { <Counter data/> }/>
    }
}

#[component]
fn Counter(data: CounterData) -> impl IntoView {
    let typed = data.typed.clone();
    let message = RwSignal::new(typed.message.clone());
    let number = RwSignal::new(typed.number.clone());
    let area = NodeRef::<leptos::html::Textarea>::new();
    let field = NodeRef::<leptos::html::Input>::new();
    // The browser may have kept text that was typed before the scripts ran.
    Effect::new(move || {
        if let (Some(area), Some(field)) = (area.get(), field.get()) {
            message.set(area.value());
            number.set(field.value());
        }
    });
    let pages_max = data.pages_max;
    let writings = data.writings();
    let status = move || message.with(|text| number.with(|number| data.status(text, number)));
    view! {
        <form
            class="form"
            method="post"
            action=format!("{COUNT_PATH}#{ANCHOR}")
            on:submit=|event| event.prevent_default()
        >
            <div class="field">
                <label for="counter-text">"Text to count"</label>
                <textarea
                    id="counter-text"
                    name="message"
                    rows="4"
                    dir="auto"
                    node_ref=area
                    on:input=move |event| message.set(event_target_value(&event))
                >
                    {text_in_area(&typed.message)}
                </textarea>
            </div>
            <div class="field">
                <label for="counter-number">"Destination number"</label>
                <input
                    id="counter-number"
                    name="number"
                    value=typed.number
                    inputmode="tel"
                    autocomplete="off"
                    aria-describedby="counter-number-hint"
                    node_ref=field
                    on:input=move |event| number.set(event_target_value(&event))
                />
                <p id="counter-number-hint" class="hint">
                    "Write it exactly as your program sends it. The format decides the price."
                </p>
            </div>
            <button type="submit" class="button without-scripts">"Count"</button>
        </form>
        <p role="status">{status}</p>
        {move || {
            let text = message.get();
            is_sendable(&text, pages_max).then(|| view! { <MessageText text/> })
        }}
        {writings}
    }
}

fn is_sendable(text: &str, pages_max: usize) -> bool {
    Checked::parse(text.to_owned(), pages_max).is_ok()
}

impl CounterData {
    /// Returns the remaining length and the cost, or why the text can't be sent.
    fn status(&self, text: &str, number: &str) -> String {
        let checked = match Checked::parse(text.to_owned(), self.pages_max) {
            Ok(checked) => checked,
            Err(invalid) => return fault(invalid, text),
        };
        let pages = checked.pages();
        let on_page = count(pages * PAGE_CHARS - text.chars().count(), "character");
        let in_segment = count(units_left(text), "place");
        let cost = self.cost(pages, number);
        format!("Left: {on_page} of this page, {in_segment} of this segment. {cost}")
    }

    fn cost(&self, pages: usize, number: &str) -> String {
        let written: String = number.chars().filter(|c| !c.is_whitespace() && *c != '-').collect();
        if written.is_empty() {
            return "Give a number to see the cost.".to_owned();
        }
        let Ok(read) = Number::parse(&written) else {
            return "A number has 4 to 15 digits, with at most a leading +.".to_owned();
        };
        let Some(prices) = self.table.prices() else {
            return "There are no prices.".to_owned();
        };
        let price = prices.unit_price(&read);
        let Some(cost) = cost_at(price.per_page, pages) else {
            return "The cost is too large to calculate.".to_owned();
        };
        let mut doubts = self.doubts(&read, &prices, pages);
        if number.trim() != written {
            let spaces = " The API refuses spaces and hyphens: leave them out.";
            doubts.push_str(spaces);
        }
        let why = match (read.kind(), &price.prefix) {
            (Kind::Local, _) => "a local number".to_owned(),
            (Kind::International, Some(prefix)) => {
                format!("an international number that begins with {prefix}")
            }
            (Kind::International, None) => {
                "an international number whose prefix has no price of its own".to_owned()
            }
        };
        let (pages, currency) = (count(pages, "page"), &self.table.currency);
        let (per_page, cost) = (price.per_page.shown(), cost.shown());
        format!("Cost: {cost} {currency} ({pages} at {per_page}) to {written}, {why}.{doubts}")
    }

    /// Returns the reasons why the number is probably a mistake. They match the API's warnings.
    fn doubts(&self, number: &Number, prices: &PricesInForce, pages: usize) -> String {
        let warnings = number.warnings(&self.home.code);
        let sentences = warnings.filter_map(|warning| {
            Some(match warning {
                NumberWarning::LooksLocal => {
                    let local = number.local_form(&self.home.code)?;
                    let cost = prices.cost(&local, pages)?.shown();
                    let (digits, currency) = (local.digits(), &self.table.currency);
                    format!(
                        " Without the country code it is {digits}, a local number in {}, and costs \
                         {cost} {currency}.",
                        self.home
                    )
                }
                NumberWarning::LeadingZero => {
                    " No country code begins with 0: check the number.".to_owned()
                }
                NumberWarning::NearLocal => format!(
                    " It has {} digits, where a local number has {LOCAL_DIGITS}: check the number.",
                    number.digits().len()
                ),
            })
        });
        sentences.collect()
    }

    /// A table of the number formats, with the price per page of each.
    fn writings(&self) -> impl IntoView + use<> {
        let prices = self.table.prices();
        let per_page = |number: &str| {
            let number = Number::parse(number).ok()?;
            Some(prices.as_ref()?.unit_price(&number).per_page.shown())
        };
        let table = Table::narrow(&writings(&self.home))
            .styled("key", "Written as", |(number, _)| number.clone())
            .column("What it is", |(_, meaning)| meaning.clone())
            .money("Per page", &self.table.currency, |(number, _)| {
                per_page(number).unwrap_or_default()
            })
            .in_region("What each way of writing a number costs");
        let home = format!(
            "The home country is {}. The price per page depends on how you write the number:",
            self.home
        );
        view! {
            <p>{home}</p>
            {table}
        }
    }
}

/// Returns an example of each number format, with its meaning.
fn writings(home: &HomeCountry) -> [(String, String); 6] {
    let code = &home.code;
    [
        (LOCAL.to_owned(), format!("{LOCAL_DIGITS} digits and no +: a local number in {home}")),
        (
            format!("{code}{LOCAL}"),
            format!("The same phone, but international because of the code {code}; the API warns"),
        ),
        (
            format!("+{code}{LOCAL}"),
            "The same phone again: with the code, the + changes nothing".to_owned(),
        ),
        (
            format!("+{LOCAL}"),
            "International because of the +: a number in another country".to_owned(),
        ),
        (
            format!("00{code}{LOCAL}"),
            "International, but no country code begins with 0; the API warns".to_owned(),
        ),
        (
            LOCAL[1..].to_owned(),
            format!(
                "International, like any number without exactly {LOCAL_DIGITS} digits; the API \
                 warns if it has 7 or 9"
            ),
        ),
    ]
}

/// Returns why a text can't be sent, and what to do.
fn fault(invalid: InvalidMessage, text: &str) -> String {
    match invalid {
        InvalidMessage::Empty => "Write a text to see how it is counted.".to_owned(),
        InvalidMessage::Nul => {
            "The text has a NUL character, which no message can have. Take it out.".to_owned()
        }
        InvalidMessage::TooLong { max_pages } => {
            let chars = text.chars().count();
            let over = chars.saturating_sub(max_pages * PAGE_CHARS);
            let [chars, over] = [chars, over].map(|n| count(n, "character"));
            let pages = count(max_pages, "page");
            format!(
                "The text has {chars}: {over} more than {pages}, the maximum for a message. \
                 Shorten it, or send it as several messages."
            )
        }
    }
}

#[cfg(test)]
mod tests;
