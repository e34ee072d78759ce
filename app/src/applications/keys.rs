//! `/applications/{reference}/keys`: an application's keys. New ones are shown once, and either can
//! be replaced after a confirmation.

use domain::{KeyKind, Reference};
use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::data::{ApplicationView, LoadApplication};
use super::frame::{ApplicationFrame, reference_in_address};
use super::shown_once::{TakeKeys, shown_once};
use crate::account::PasswordField;
use crate::client::call;
use crate::problem::Problem;
use crate::ui::{FormState, Loaded, PostForm, ProofField, SubmitButton};
#[cfg(feature = "ssr")]
use {
    super::new_keys::NewKeys,
    crate::portal_request::{prove, signed_in},
    crate::problem::Cause,
};

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
    let kind = kind_of(&kind).ok_or(Cause::Unreadable)?;
    let token = current.token().unwrap_or_default();
    let key = current
        .service()
        .replace_key(account.id, reference, kind, &password, &token)
        .await?;
    let kept = current.keep_keys(reference, &NewKeys::of(&[key])).await;
    kept.map_err(Problem::after_change)?;
    // The confirmation is over: the page shows the new key.
    leptos_axum::redirect(&format!("/applications/{reference}/keys"));
    Ok(())
}

const LIVE: &str = "live";
const TEST: &str = "test";

fn kind_of(text: &str) -> Option<KeyKind> {
    match text {
        LIVE => Some(KeyKind::Live),
        TEST => Some(KeyKind::Test),
        _ => None,
    }
}

#[component]
pub fn KeysPage() -> impl IntoView {
    let reference = reference_in_address();
    let query = use_query_map();
    let replaced = Memo::new(move |_| {
        let kind = query.with(|query| query.get("replace"));
        kind.as_deref().and_then(kind_of)
    });
    let form = FormState::new::<ReplaceKey>("keys-alert");
    let data = Resource::new(
        move || (reference.get(), form.accepted.get()),
        |(reference, _)| call(LoadApplication { reference }),
    );
    let keys = Resource::new(
        move || (reference.get(), form.accepted.get()),
        |(reference, _)| call(TakeKeys { reference }),
    );
    let render = move |data: ApplicationView| {
        let reference = data.application.reference;
        view! {
            <ApplicationFrame application=data.application at="Keys">
                {shown_once(keys)}
                <h2>"Keys"</h2>
                <Key reference kind=KeyKind::Live replaced form/>
                <Key reference kind=KeyKind::Test replaced form/>
            </ApplicationFrame>
        }
    };
    view! { <Loaded data render/> }
}

/// One of the two keys: what it is for, and the way to replace it.
#[component]
fn Key(
    reference: Reference,
    kind: KeyKind,
    /// The key whose replacement is to be confirmed.
    replaced: Memo<Option<KeyKind>>,
    form: FormState,
) -> impl IntoView {
    let (name, purpose, open_label, word) = match kind {
        KeyKind::Live => (
            "API key",
            "Sends for real, and pays from the balance.",
            "Get a new API key",
            LIVE,
        ),
        KeyKind::Test => (
            "Test key",
            "Sends to nobody and costs nothing; each day it has a test balance of its own.",
            "Get a new test key",
            TEST,
        ),
    };
    let open = format!("/applications/{reference}/keys?replace={word}");
    let choice = move || {
        if replaced.get() == Some(kind) {
            view! { <Confirmation reference kind form/> }.into_any()
        } else {
            view! { <p><a class="button" href=open.clone()>{open_label}</a></p> }.into_any()
        }
    };
    view! {
        <section class="panel">
            <h3>{name}</h3>
            <p>{purpose}</p>
            {choice}
        </section>
    }
}

/// The question whether a key is to be replaced, answered by the account's password.
#[component]
fn Confirmation(reference: Reference, kind: KeyKind, form: FormState) -> impl IntoView {
    let (label, word) = match kind {
        KeyKind::Live => ("Replace key", LIVE),
        KeyKind::Test => ("Replace test key", TEST),
    };
    view! {
        <PostForm form>
            <p>
                "The old key stops working immediately, and every other device of your account is \
                 signed out. Enter your account's password to go on."
            </p>
            <input type="hidden" name="reference" value=reference.to_string()/>
            <input type="hidden" name="kind" value=word/>
            <PasswordField form/>
            <ProofField form/>
            <div class="buttons">
                <SubmitButton label form primary=true/>
                <a class="button button-quiet" href=format!("/applications/{reference}/keys")>
                    "Cancel"
                </a>
            </div>
        </PostForm>
    }
}
