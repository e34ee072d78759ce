//! The chapter about versions and changes.

use leptos::prelude::*;
use serde_json::Value;

/// The rules that programs can rely on. The OpenAPI document has the same text.
pub const VERSION_RULES: &str = "Within a version, paths, parameters, fields, codes and stable \
    words keep their names and their meaning. New ones may be added at any time. A program should \
    ignore fields that it doesn't know, and handle an unknown status, reason or error like any \
    other that it doesn't treat specially. Anything that will be removed, or change its meaning, \
    is marked as deprecated in /openapi.json at least 12 months before. From then on its answers \
    have the headers Deprecation (RFC 9745) and Sunset (RFC 8594) with the dates. A new version \
    gets its own paths, and the old one stays for at least 12 months.";

/// The chapter about versions.
pub fn versions(document: &Value) -> impl IntoView + use<> {
    let version = document["info"]["version"].as_str().unwrap_or_default();
    let version = format!("This is version {version} of the API. ");
    view! {
        <h2 id="versions">"Versions"</h2>
        <p>{version} {VERSION_RULES} " Nothing is deprecated now."</p>
    }
}
