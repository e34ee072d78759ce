//! The first API calls, ready to paste.

use domain::{Reference, TestNumber};
use leptos::prelude::*;

/// Returns the beginning of a key, for display.
fn shortened(reference: Reference, prefix: &str) -> String {
    format!("{reference}{prefix}…")
}

/// Two calls with the application's test key. They contain the whole key while the page shows a new
/// one, and otherwise only its beginning.
#[component]
pub fn QuickStart(
    reference: Reference,
    base_url: String,
    test_key: Option<String>,
) -> impl IntoView {
    let whole = test_key.is_some();
    let test = test_key.unwrap_or_else(|| shortened(reference, "ht_"));
    let number = TestNumber::Delivered.digits();
    view! {
        <h2 id="quick-start">"Quick start"</h2>
        <p>"Try it with the test key: it sends to nobody and costs nothing."</p>
        <pre tabindex="0"><code>{format!(
            "curl {base_url}/sms/send/{test} \\\n  --data number={number} \\\n  \
             --data-urlencode 'message=Hello from Heliograph'",
        )}</code></pre>
        <p>"See what became of the messages sent with that key:"</p>
        <pre tabindex="0"><code>{format!("curl {base_url}/sms/reports/{test}")}</code></pre>
        <p>"With the API key, the same calls send real messages and report on them."</p>
        {(!whole)
            .then(|| view! { <p class="fine">"Replace the shortened key with your full key."</p> })}
        <p>
            "All calls, fields and codes are in the " <a href="/docs" rel="external">"API reference"</a> "."
        </p>
    }
}
