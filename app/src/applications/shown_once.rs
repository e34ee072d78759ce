//! Shows new keys once.

use leptos::prelude::*;

use super::new_keys::NewKeys;
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::SecretField;
#[cfg(feature = "ssr")]
use {
    crate::portal_request::{current_request, is_shown},
    domain::Reference,
};

/// Returns new keys and deletes them. Uses POST, because it changes state.
///
/// # Errors
/// If the text isn't a reference, or the session can't be read or written.
#[server(prefix = "/fn", endpoint = "take-keys")]
pub async fn take_keys(reference: String) -> Result<Option<NewKeys>, Problem> {
    if !is_shown() {
        return Ok(None);
    }
    current_request()?.take_keys(Reference::parse(&reference)?).await
}

const REPLACED: &str = " The old key has stopped working: your systems send nothing until they have \
                        this one.";

/// A section that a page shows once. It gets the focus, because the form that caused it may be far
/// below.
#[component]
pub fn Once(children: Children) -> impl IntoView {
    let section = NodeRef::<leptos::html::Section>::new();
    Effect::new(move || {
        if let Some(section) = section.get() {
            // If the browser can't move the focus, it still shows the section.
            let _ = section.focus();
        }
    });
    view! { <section class="once" tabindex="-1" node_ref=section>{children()}</section> }
}

#[component]
fn KeysShown(keys: NewKeys) -> impl IntoView {
    // A new application has two new keys. A single one replaces another.
    let replaced = keys.live.is_some() != keys.test.is_some();
    let spends =
        keys.live.is_some().then_some(" Anyone who has the API key can spend the balance.");
    let fields: Vec<_> = [
        ("API key", "api-key", keys.live, "Copy key"),
        ("Test key", "test-key", keys.test, "Copy test key"),
    ]
    .into_iter()
    .filter_map(|(label, name, value, copy_label)| {
        let value = value?;
        Some(view! { <SecretField label name value copy_label/> })
    })
    .collect();
    view! {
        <Once>
            <p>
                <strong>"Save this now. It is shown only once."</strong>
                " We store only a fingerprint of a key."
                {spends}
                {replaced.then_some(REPLACED)}
            </p>
            {fields}
        </Once>
    }
}

/// Shows the new keys, if there are any.
pub fn shown_once(keys: PageData<Option<NewKeys>>) -> impl IntoView + use<> {
    let shown = move || {
        Suspend::new(async move {
            let keys = keys.get().await.ok().flatten();
            keys.map(|keys| view! { <KeysShown keys/> })
        })
    };
    view! { <Transition>{shown}</Transition> }
}
