//! `/docs`: the API reference. The server renders it from the OpenAPI document and the rules. The
//! browser build has no code for it and always loads the page from the server.

#[cfg(feature = "ssr")]
mod call;
#[cfg(feature = "ssr")]
mod calls;
#[cfg(feature = "ssr")]
mod chapters;
#[cfg(feature = "ssr")]
mod events;
#[cfg(feature = "ssr")]
mod reasons;
#[cfg(feature = "ssr")]
mod schema;
#[cfg(feature = "ssr")]
mod versions;
mod view;
#[cfg(feature = "ssr")]
mod written;

use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use crate::counter::{ANCHOR, CounterData, LoadCounter, TextCounter};
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{Loaded, Page};

#[cfg(feature = "ssr")]
pub use reasons::reason_address;
#[cfg(feature = "ssr")]
pub use versions::VERSION_RULES;
pub use view::Written;
#[cfg(feature = "ssr")]
pub use written::chapters;
#[cfg(feature = "ssr")]
use written::written;

/// Loads the reference. Needs no sign-in. The chapters are part of the page only, not of this
/// function's JSON.
#[server(prefix = "/fn", endpoint = "docs", input = GetUrl)]
pub async fn load_docs() -> Result<Written, Problem> {
    written().await
}

#[component]
pub fn DocsPage() -> impl IntoView {
    #[cfg(not(feature = "ssr"))]
    if !is_in_page() {
        return view! { <crate::parts::OpenAnew/> }.into_any();
    }
    let written = PageData::new(|| LoadDocs {});
    let counter = PageData::new(|| LoadCounter {});
    let render = move |written| view! { <Chapters written counter/> };
    view! { <Loaded data=written render/> }.into_any()
}

/// Whether the browser is hydrating this page.
#[cfg(not(feature = "ssr"))]
fn is_in_page() -> bool {
    Owner::current_shared_context().is_some_and(|shared| shared.during_hydration())
}

#[component]
fn Chapters(written: Written, counter: PageData<CounterData>) -> impl IntoView {
    view! {
        <Page title="API reference">
            <p class="lead">
                "The API takes HTTP requests and answers in JSON. The base address is "
                <code>{written.base_url}</code>
                ". The key goes into the path or into the header "
                <code>"Authorization: Bearer"</code> ". The OpenAPI document is at "
                // Because of `rel`, the browser opens the document instead of the router.
                <a href="/openapi.json" rel="external">"/openapi.json"</a>
                ". If a generator of clients makes invalid code of its section "
                <code>"webhooks"</code> ", as openapi-generator 7 does, delete the section first."
            </p>
            // The browser follows these links itself, so that the focus and `:target` move.
            <nav class="toc" aria-label="On this page">
                <a href="#send" rel="external">"Send"</a>
                <a href="#bulk" rel="external">"Files"</a>
                <a href="#batches" rel="external">"Batches"</a>
                <a href="#reports" rel="external">"Reports"</a>
                <a href="#events" rel="external">"Events"</a>
                <a href="#webhooks" rel="external">"Webhooks"</a>
                <a href="#balance" rel="external">"Balance"</a>
                <a href="#statuses" rel="external">"Statuses"</a>
                <a href="#errors" rel="external">"Errors"</a>
                <a href="#test" rel="external">"Test key"</a>
                <a href="#codes" rel="external">"Codes"</a>
                <a href="#versions" rel="external">"Versions"</a>
                <a href="#prices" rel="external">"Prices"</a>
                <a href=format!("#{ANCHOR}") rel="external">"Count a text"</a>
            </nav>
            <div inner_html=written.html></div>
            <TextCounter data=counter/>
        </Page>
    }
}
