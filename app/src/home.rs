//! `/`: the front page.

use domain::Kind;
use domain::records::PriceTable;
use leptos::either::Either;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use crate::page_data::PageData;
#[cfg(feature = "ssr")]
use crate::portal_request::current_request;
use crate::problem::Problem;
use crate::ui::{Loaded, Table, mark_live, set_title};

/// The page's data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Home {
    pub prices: PriceTable,
    pub base_url: String,
    pub signed_in: bool,
}

/// Loads the prices, current and upcoming, and whether somebody is signed in. Needs no sign-in.
#[server(prefix = "/fn", endpoint = "home", input = GetUrl)]
pub async fn load_home() -> Result<Home, Problem> {
    let current = current_request()?;
    let prices = current.service().money().price_table().await?;
    let signed_in = current.account().await?.is_some();
    Ok(Home { prices, base_url: current.site().base_url.clone(), signed_in })
}

#[component]
pub fn HomePage() -> impl IntoView {
    let data = PageData::new(|| LoadHome {});
    view! { <Loaded data render=|home| view! { <Welcome home/> }/> }
}

#[component]
fn Welcome(home: Home) -> impl IntoView {
    mark_live();
    set_title("Heliograph · text messages for your systems".to_owned());
    let doors = if home.signed_in {
        Either::Left(view! {
            <a class="button button-primary" href="/applications">"Go to My Applications"</a>
        })
    } else {
        Either::Right(view! {
            <a class="button button-primary" href="/register">"Create account"</a>
            <a class="button" href="/login">"Sign in"</a>
        })
    };
    view! {
        <section class="hero">
            <div>
                <h1>"Text messages from your systems, with one HTTP call."</h1>
                <p class="lead">
                    "One-time passwords, confirmations, notices: your system calls, Heliograph \
                     delivers and reports the status of each message. You aren't charged if no \
                     carrier accepts the message. A message that a carrier accepted is charged, \
                     even if the phone was off."
                </p>
                <p class="buttons">{doors}</p>
            </div>
            <Sample base_url=home.base_url/>
        </section>
        <div class="pair">
            <Prices prices=home.prices/>
            <Steps/>
        </div>
    }
}

#[component]
fn Sample(base_url: String) -> impl IntoView {
    let call = format!(
        "curl {base_url}/sms/send/YOUR_KEY \\\n  --data number=58001234 \\\n  \
         --data-urlencode 'message=Your code is 4711'",
    );
    let answer = r#"{
  "code": 200,
  "message": "SUCCESS",
  "transid": "m_0hv3k9w2c8r1e",
  "balance": 9.95
}"#;
    view! {
        <figure class="sample">
            <pre tabindex="0"><code>{call}</code></pre>
            <pre tabindex="0"><code>{answer}</code></pre>
            <figcaption>"A call and its answer."</figcaption>
        </figure>
    }
}

#[component]
fn Prices(prices: PriceTable) -> impl IntoView {
    let records = || prices.in_force.iter().chain(&prices.coming);
    let has_more = records().any(|price| price.prefix.is_some()) || !prices.coming.is_empty();
    let base = prices.in_force.iter().filter(|price| price.prefix.is_none());
    let rows: Vec<_> = base
        .filter_map(|price| {
            let to = match price.kind {
                Kind::Local => "Local numbers (8 digits)",
                Kind::International => "International numbers",
            };
            Some((to, price.per_page?))
        })
        .collect();
    let table =
        Table::narrow(&rows)
            .column("To", |row| row.0)
            .money("Per page", &prices.currency, |row| row.1.shown());
    let more = has_more.then(|| {
        view! {
            <p>
                <a href="/docs#prices" rel="external">"All prices"</a>
                ", including prices by prefix and upcoming changes."
            </p>
        }
    });
    view! {
        <section>
            <h2>"Prices"</h2>
            <div class="table-scroll">{table.view()}</div>
            {more}
            <p>
                "A page is up to 160 characters, in any script; a longer text has more pages. You \
                 pay from a balance that you fill by bank transfer: no subscription, no minimum."
            </p>
        </section>
    }
}

#[component]
fn Steps() -> impl IntoView {
    view! {
        <section>
            <h2>"How it works"</h2>
            <ol class="steps">
                <li>
                    <strong>"Create an application."</strong>
                    " You get an API key, and a test key that works at once and sends to nobody."
                </li>
                <li>
                    <strong>"Ask for activation and make a deposit."</strong>
                    " Write the application's reference on the bank transfer."
                </li>
                <li>
                    <strong>"Send."</strong>
                    " The code 200 means that the message is stored and charged once. Reports show \
                     its status, on these pages and through the API."
                </li>
            </ol>
            <p>
                "Messages are sent only through the API, never from these pages. The "
                <a href="/docs" rel="external">"API reference"</a> " has every field and code."
            </p>
        </section>
    }
}
