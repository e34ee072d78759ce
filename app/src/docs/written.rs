//! Renders the reference as HTML. The chapters that all readers share are rendered only once.

use domain::Reference;
use domain::records::PriceTable;
use leptos::prelude::*;
use serde_json::Value;

use super::calls::{FILE_CHECK, call_chapters};
use super::chapters::{errors, keys, outcomes, prices, statuses};
use super::events::RECEIVERS;
use super::reasons::reasons;
use super::versions::versions;
use super::view::Written;
use crate::portal_request::current_request;
use crate::problem::Problem;

/// The placeholder for a key.
const KEY: &str = "YOUR_KEY";

/// Renders the chapters that all readers share, with `YOUR_KEY` in the snippets.
pub fn chapters(document: &Value, base_url: &str) -> String {
    let owner = Owner::new();
    owner.with(|| {
        let chapters = (
            keys(KEY, base_url),
            call_chapters(document, base_url, KEY),
            statuses(),
            errors(),
            outcomes(),
            reasons(),
            versions(document),
        );
        chapters.to_html()
    })
}

/// Returns the reference for the current reader.
pub(super) async fn written() -> Result<Written, Problem> {
    let current = current_request()?;
    let applications = match current.account().await? {
        Some(account) => current.service().applications().of_account(account.id).await?,
        None => Vec::new(),
    };
    let first = applications.first().map(|application| application.reference);
    let table = current.service().money().price_table().await?;
    let site = current.site();
    let chapters = site.reference.replace(KEY, &key_sample(first));
    let chapters = chapters.replace(RECEIVERS, &page(first, "start#receive"));
    let chapters = chapters.replace(FILE_CHECK, &page(first, "check-file"));
    Ok(Written { html: chapters + &priced(&table), base_url: site.base_url.clone() })
}

fn priced(table: &PriceTable) -> String {
    prices(table).into_view().to_html()
}

/// Returns the text that replaces [`KEY`]. It starts with the reader's reference, if there is one.
fn key_sample(reference: Option<Reference>) -> String {
    reference.map_or_else(|| KEY.to_owned(), |reference| format!("{reference}hk_…"))
}

/// Returns the address of a page of the reader's application, which replaces [`RECEIVERS`] or
/// [`FILE_CHECK`]. A reader without an application gets the list of applications.
fn page(reference: Option<Reference>, path: &str) -> String {
    match reference {
        Some(reference) => format!("/applications/{reference}/{path}"),
        None => "/applications".to_owned(),
    }
}
