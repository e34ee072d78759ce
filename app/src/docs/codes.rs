//! The chapter about codes. Its table is made from the list by which the API answers.

use domain::Reason;
use domain::reason::CODE_SUCCESS;
use leptos::prelude::*;

use crate::ui::Table;

/// The meaning of a success.
const DONE: &str = "Done: the message is stored and charged once.";

/// Every code, HTTP status and reason.
#[component]
pub fn Codes() -> impl IntoView {
    // The row without a reason is that of success.
    let rows: Vec<_> = std::iter::once(None)
        .chain(Reason::ALL.into_iter().map(Some))
        .collect();
    let table = Table::wide(&rows)
        .amount("Code", |reason| reason.map_or(CODE_SUCCESS, Reason::code))
        .amount("HTTP", |reason| {
            reason.map_or(CODE_SUCCESS, Reason::http_status)
        })
        .styled("key", "Reason", |reason| {
            reason.map_or("none", Reason::as_str)
        })
        .column("Meaning", |reason| reason.map_or(DONE, Reason::sentence))
        .in_region("Codes and reasons");
    view! {
        <h2 id="codes">"Codes"</h2>
        <p>
            "Programs match " <code>"code"</code> " or, more exactly, " <code>"reason"</code>
            "; both are stable. The words are for people and may change. Whatever the code but \
             200: nothing was stored and nothing charged."
        </p>
        {table}
    }
}
