//! The first calls of the API, ready to paste.

use domain::Reference;
use leptos::prelude::*;

/// What stands for the part of a key that is never shown again.
fn shortened(reference: Reference, prefix: &str) -> String {
    format!("{reference}{prefix}…")
}

/// Two calls with the application's own keys. The whole test key is in them while it is on the page
/// anyway.
#[component]
pub fn QuickStart(
    reference: Reference,
    base_url: String,
    test_key: Option<String>,
) -> impl IntoView {
    let whole = test_key.is_some();
    let test = test_key.unwrap_or_else(|| shortened(reference, "ht_"));
    let live = shortened(reference, "hk_");
    view! {
        <h2 id="quick-start">"Quick start"</h2>
        <p>"Try it with the test key: it sends to nobody and costs nothing."</p>
        <pre tabindex="0"><code>{format!(
            "curl {base_url}/sms/send/{test} \\\n  --data number=00000001 \\\n  --data-urlencode 'message=Hello from Heliograph'",
        )}</code></pre>
        <p>"With the API key the same call sends for real. Ask what became of the messages:"</p>
        <pre tabindex="0"><code>{format!("curl {base_url}/sms/reports/{live}")}</code></pre>
        {(!whole)
            .then(|| view! { <p class="fine">"Put your whole key in the place of the shortened one."</p> })}
        <p>
            "All calls, fields and codes are in the " <a href="/docs">"API reference"</a> "."
        </p>
    }
}
