//! The links to a CSV file.

use leptos::prelude::*;

/// The links to a CSV file: in the API's form, and in the form for spreadsheets.
#[component]
pub fn Downloads(href: String) -> impl IntoView {
    let separator = if href.contains('?') { '&' } else { '?' };
    let sheet = format!("{href}{separator}for=spreadsheets");
    // The router leaves downloads to the browser.
    view! {
        <a class="button" href=href download rel="external">"Download CSV"</a>
        " "
        <a class="button" href=sheet download rel="external">"For spreadsheets"</a>
    }
}
