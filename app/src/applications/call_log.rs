//! The recent API calls of an application: what each did, what was wrong and what to do.

use domain::Timestamp;
use leptos::prelude::*;
use serde::{Deserialize, Serialize};
#[cfg(feature = "ssr")]
use {
    crate::docs::reason_address, domain::KeyKind, domain::reason::CODE_SUCCESS,
    domain::records::ApiCallRecord,
};

use crate::reports::count;
use crate::ui::{Table, in_zone};

/// A call in words. The server chooses the words, so that the browser needs no list of reasons.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallView {
    at: Timestamp,
    call: String,
    key: String,
    from: String,
    recipient: String,
    /// The HTTP status and the code.
    answer: String,
    refusal: Option<RefusalView>,
}

/// Why a call was refused.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct RefusalView {
    reason: String,
    /// The address of the reason in the API reference.
    href: String,
    wrong: String,
    to_do: String,
}

#[cfg(feature = "ssr")]
impl From<ApiCallRecord> for CallView {
    fn from(record: ApiCallRecord) -> Self {
        let (status, code) = match record.reason {
            None => (CODE_SUCCESS, CODE_SUCCESS),
            Some(reason) => (reason.http_status(), reason.code()),
        };
        let was_replaced = record.had_replaced_key();
        let detail = record.detail;
        let refusal = record.reason.map(|reason| RefusalView {
            reason: reason.to_string(),
            href: reason_address(reason),
            wrong: match detail {
                _ if was_replaced => "The key was replaced.".to_owned(),
                Some(detail) => detail,
                None => reason.sentence().to_owned(),
            },
            to_do: if was_replaced { REPLACED } else { reason.advice() }.to_owned(),
        });
        let key = match (record.kind, was_replaced) {
            (KeyKind::Live, false) => "API key",
            (KeyKind::Live, true) => "Replaced API key",
            (KeyKind::Test, false) => "Test key",
            (KeyKind::Test, true) => "Replaced test key",
        };
        Self {
            at: record.at,
            call: record.call.replace("{key}", "…"),
            key: key.to_owned(),
            from: record.from.unwrap_or_default(),
            recipient: record.recipient.unwrap_or_default(),
            answer: format!("HTTP {status}, code {code}"),
            refusal,
        }
    }
}

/// Advice for a call with a replaced key.
#[cfg(feature = "ssr")]
const REPLACED: &str = "Give your system the new key. If the call isn't yours, you don't need to \
                        do anything: that key no longer works.";

/// The address of `api_invalid` in the API reference.
const NOT_KNOWN: &str = "/docs#reason-api_invalid";

/// The number of calls shown at once. Older calls are shown on demand.
const AT_ONCE: usize = 10;

/// Renders the table of the recent calls.
pub fn call_log(calls: &[CallView]) -> AnyView {
    let (newest, older) = calls.split_at(calls.len().min(AT_ONCE));
    let older = (!older.is_empty()).then(|| {
        view! {
            <details>
                <summary>{format!("Show {}", count(older.len(), "earlier call"))}</summary>
                {table(older).in_region("Earlier API calls")}
            </details>
        }
    });
    view! {
        <h2 id="calls">"Last API calls"</h2>
        <p>
            "The last 50 calls with this application's keys, including keys that were replaced \
             within the last day. A new call appears here after a few seconds."
        </p>
        {table(newest).in_region_or("Last API calls", "No call was made yet.")}
        {older}
        <p class="fine">
            "A call is missing here if it had no key of this application (HTTP 401, code 504, "
            <a href=NOT_KNOWN rel="external">"api_invalid"</a>
            "), if its address doesn't exist (HTTP 404), or if its connection was closed before it \
             was answered."
        </p>
    }
    .into_any()
}

fn table(calls: &[CallView]) -> Table<'_, CallView> {
    Table::wide(calls)
        .compact()
        .time(in_zone("Time (UTC)"), |call| call.at)
        .styled("key", "Call", |call| call.call.clone())
        .column("Made with", |call| call.key.clone())
        .styled("key", "From", |call| call.from.clone())
        .styled("figures", "To", |call| call.recipient.clone())
        .column("Answer", |call| {
            view! {
                {call.answer.clone()}
                {call.refusal.as_ref().map(refusal)}
            }
        })
}

/// Says what was wrong in a call, and what to do.
fn refusal(refusal: &RefusalView) -> impl IntoView + use<> {
    view! {
        ", " <a href=refusal.href.clone() rel="external"><code>{refusal.reason.clone()}</code></a>
        <div class="fine reason">{refusal.wrong.clone()}</div>
        <div class="fine reason">{refusal.to_do.clone()}</div>
    }
}
