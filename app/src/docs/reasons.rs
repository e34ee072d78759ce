//! The chapter about codes. Its table comes from the same list as the API's responses.

use domain::Reason;
use domain::reason::CODE_SUCCESS;
use leptos::prelude::*;

use crate::ui::Table;

/// The meaning of a success.
const DONE: &str = "Done: the message is stored and charged once.";

/// Returns the ID of a reason's row.
pub fn anchor(reason: &str) -> String {
    format!("reason-{reason}")
}

/// Returns the address of a reason in the API reference.
pub fn reason_address(reason: Reason) -> String {
    format!("/docs#{}", anchor(reason.as_str()))
}

/// The chapter with every code, HTTP status and reason.
pub fn reasons() -> AnyView {
    // The row without a reason is the success.
    let rows: Vec<_> = std::iter::once(None).chain(Reason::ALL.into_iter().map(Some)).collect();
    let table = Table::wide(&rows)
        .amount("Code", |reason| reason.map_or(CODE_SUCCESS, Reason::code))
        .amount("HTTP", |reason| reason.map_or(CODE_SUCCESS, Reason::http_status))
        .styled("key", "Reason", |reason| {
            let word = reason.map_or("none", Reason::as_str);
            let id = reason.map(|_| anchor(word));
            view! { <span id=id>{word}</span> }
        })
        .column("Meaning", |reason| reason.map_or(DONE, Reason::sentence))
        .column("What to do", |reason| reason.map_or("Nothing.", Reason::advice))
        .in_region("Codes and reasons");
    view! {
        <h2 id="codes">"Codes"</h2>
        <p>
            "Programs match " <code>"code"</code> " or, more exactly, " <code>"reason"</code>
            "; both are stable. The texts are for people and may change. With any code other than \
             200, nothing was stored and nothing was charged."
        </p>
        {table}
    }
    .into_any()
}
