//! The chapter about versions and changes.

use leptos::prelude::*;
use serde_json::Value;

/// What programs can rely on. The OpenAPI document has the same text.
pub const VERSION_RULES: &str = "Within a version, paths, parameters, fields, codes and stable \
    words keep their names and their meaning. New ones may come at any time: a program ignores \
    fields that it doesn't know, and takes an unknown status, reason or error for one that it has \
    no special treatment for. What is going to be removed, or to change its meaning, is marked as \
    deprecated in /openapi.json at least 12 months before. From then on its answers say so in the \
    headers Deprecation (RFC 9745) and Sunset (RFC 8594), with the dates. A new version gets paths \
    of its own, and the old one stays for at least 12 months.";

/// The chapter about versions.
pub fn versions(document: &Value) -> impl IntoView + use<> {
    let version = document["info"]["version"].as_str().unwrap_or_default();
    let version = format!("This is version {version} of the API. ");
    view! {
        <h2 id="versions">"Versions"</h2>
        <p>{version} {VERSION_RULES} " Nothing is deprecated now."</p>
    }
}
