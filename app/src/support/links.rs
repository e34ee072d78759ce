//! Links from any page of staff to the records that it names.

use domain::{BatchId, Reference, Transid};
use leptos::prelude::*;
use leptos_router::location::Url;

use crate::ui::address;

/// The path of the page that assigns a deposit.
pub const ASSIGN_PATH: &str = "/support/deposits/assign";
pub const SEARCH_PATH: &str = "/support/search";

/// Returns the address of the page of the account with an email.
pub fn account_path(email: &str) -> String {
    format!("/support/accounts/{}", Url::escape(email))
}

/// Returns the address of an application's page.
pub fn application_path(reference: Reference) -> String {
    format!("/support/applications/{reference}")
}

/// Returns the address of a deposit's page.
pub fn deposit_path(bank_id: &str) -> String {
    address(ASSIGN_PATH, [("bank_id", bank_id)])
}

/// Renders the link to an application.
pub fn application_link(reference: Reference) -> impl IntoView {
    let href = application_path(reference);
    view! { <a class="key" href=href>{reference.to_string()}</a> }
}

/// Renders the link to a deposit.
pub fn deposit_link(bank_id: &str) -> impl IntoView + use<> {
    let href = deposit_path(bank_id);
    view! { <a href=href>{bank_id.to_owned()}</a> }
}

/// Renders a text as a link if it names an account, an application, a message or a batch.
pub fn named_link(text: &str) -> AnyView {
    let href = if text.contains('@') {
        account_path(text)
    } else if let Ok(reference) = Reference::parse(text) {
        application_path(reference)
    } else if Transid::parse(text).is_some() {
        format!("/support/messages/{text}")
    } else if BatchId::parse(text).is_some() {
        address(SEARCH_PATH, [("q", text)])
    } else {
        return text.to_owned().into_any();
    };
    view! { <a href=href>{text.to_owned()}</a> }.into_any()
}
