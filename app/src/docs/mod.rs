//! `/docs`: the reference of the SMS API.

mod calls;
mod codes;

use domain::Reference;
use domain::records::PriceTable;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use crate::client::call;
#[cfg(feature = "ssr")]
use crate::portal_request::current_request;
use crate::problem::Problem;
use crate::ui::{Loaded, Page};

use codes::Codes;

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Docs {
    pub base_url: String,
    pub prices: PriceTable,
    /// The reference of one of the reader's own applications, for the snippets.
    pub reference: Option<Reference>,
}

/// The data of the page, for readers who are signed in and for others.
#[server(prefix = "/fn", endpoint = "docs", input = GetUrl)]
pub async fn load_docs() -> Result<Docs, Problem> {
    let current = current_request()?;
    let applications = match current.account().await? {
        Some(account) => current.service().applications(account.id).await?,
        None => Vec::new(),
    };
    let site = current.site();
    Ok(Docs {
        base_url: site.base_url.clone(),
        prices: current.service().price_table().await?,
        reference: applications
            .first()
            .map(|application| application.reference),
    })
}

#[component]
pub fn DocsPage() -> impl IntoView {
    let data = Resource::new(|| (), |()| call(LoadDocs {}));
    view! { <Loaded data render=|docs| view! { <Chapters docs/> }/> }
}

/// The text in the place of a key in the snippets: with its first digits when the reader has one.
fn key_sample(reference: Option<Reference>) -> String {
    reference.map_or_else(
        || "YOUR_KEY".to_owned(),
        |reference| format!("{reference}hk_…"),
    )
}

#[component]
fn Chapters(docs: Docs) -> impl IntoView {
    let base_url = docs.base_url;
    let key = key_sample(docs.reference);
    view! {
        <Page title="API reference">
            <p class="lead">
                "Plain HTTP, answers in JSON. The base address is " <code>{base_url.clone()}</code>
                ", the key is a part of the path or stands in the header "
                <code>"Authorization: Bearer"</code> ". Programs that read OpenAPI find all of it at "
                // The router leaves the document to the browser.
                <a href="/openapi.json" rel="external">"/openapi.json"</a> "."
            </p>
            <nav class="toc" aria-label="On this page">
                <a href="#send">"Send"</a>
                <a href="#bulk">"Files"</a>
                <a href="#reports">"Reports"</a>
                <a href="#balance">"Balance"</a>
                <a href="#prices">"Prices"</a>
                <a href="#statuses">"Statuses"</a>
                <a href="#test">"Test key"</a>
                <a href="#codes">"Codes"</a>
            </nav>
            {calls::keys(&key, &base_url)}
            {calls::send(&key, &base_url, &docs.prices.currency)}
            {calls::bulk(&key, &base_url)}
            {calls::reports(&key, &base_url)}
            {calls::balance(&key, &base_url)}
            {calls::prices(&key, &base_url, &docs.prices)}
            {calls::statuses()}
            {calls::outcomes()}
            <Codes/>
        </Page>
    }
}
