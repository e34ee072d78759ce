//! An application's keys: new ones are shown once, and either can be replaced.

use domain::Reference;
use leptos::prelude::*;

use super::new_keys::NewKeys;
use crate::account::PasswordField;
use crate::problem::Problem;
use crate::ui::{FormState, PostForm, ProofField, SecretField, SubmitButton};
#[cfg(feature = "ssr")]
use {
    crate::portal_request::{current_request, is_shown, prove, signed_in},
    crate::problem::Cause,
    domain::KeyKind,
};

/// Gives new keys out and forgets them. It is called by POST, since it changes something.
///
/// # Errors
/// When the text isn't a reference, or the session can't be read or written.
#[server(prefix = "/fn", endpoint = "take-keys")]
pub async fn take_keys(reference: String) -> Result<Option<NewKeys>, Problem> {
    if !is_shown() {
        return Ok(None);
    }
    current_request()?
        .take_keys(Reference::parse(&reference)?)
        .await
}

/// Replaces a key; the old one stops working at once, and all other devices are signed out.
///
/// # Errors
/// When nobody is signed in, the password is wrong, a code is needed or wrong, the application
/// isn't the account's, there were too many attempts, or the service fails.
#[server(prefix = "/fn", endpoint = "replace-key")]
pub async fn replace_key(
    reference: Reference,
    kind: String,
    password: String,
    #[server(default)] proof: String,
) -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    // The password is asked for in any case: it is the proof of an account without second factor.
    if account.second_factor {
        prove(&current, &account, &proof).await?;
    }
    let kind = match kind.as_str() {
        LIVE => KeyKind::Live,
        TEST => KeyKind::Test,
        _ => return Err(Cause::Unreadable.into()),
    };
    let token = current.token().unwrap_or_default();
    let key = current
        .service()
        .replace_key(account.id, reference, kind, &password, &token)
        .await?;
    let kept = current.keep_keys(reference, &NewKeys::of(&[key])).await;
    kept.map_err(Problem::after_change)
}

const LIVE: &str = "live";
const TEST: &str = "test";

/// New keys, which are shown this once.
#[component]
pub fn KeysShown(keys: NewKeys) -> impl IntoView {
    // The form that made the keys may stand far below.
    let section = NodeRef::<leptos::html::Section>::new();
    Effect::new(move || {
        if let Some(section) = section.get() {
            // A browser that can't move the focus shows the keys nevertheless.
            let _ = section.focus();
        }
    });
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
        <section class="once" tabindex="-1" node_ref=section>
            <p>
                <strong>"Keep this now: it is shown this once."</strong>
                " We store only a fingerprint of a key. Whoever has the key can spend the balance."
            </p>
            {fields}
        </section>
    }
}

/// The form that replaces a key: a field for the password, and a button for each of the two keys.
#[component]
pub fn ReplaceKeys(reference: Reference, form: FormState) -> impl IntoView {
    view! {
        <section>
            <h2 id="keys">"Keys"</h2>
            <p>
                "The old key stops working at once, and every other device of your account is \
                 signed out. Enter your account's password to replace a key."
            </p>
            <PostForm form>
                <input type="hidden" name="reference" value=reference.to_string()/>
                <PasswordField form/>
                <ProofField form/>
                <div class="buttons">
                    <SubmitButton label="Replace key" field=("kind", LIVE) form/>
                    <SubmitButton
                        label="Replace test key"
                        field=("kind", TEST)
                        form
                    />
                </div>
            </PostForm>
        </section>
    }
}
