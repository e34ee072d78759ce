//! `/applications/{reference}/keys`: an application's keys. New ones are shown once, and either can
//! be replaced after a confirmation.

use domain::records::KeyRecord;
use domain::{KeyKind, Reference};
use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::data::{ApplicationView, LoadApplication};
use super::frame::{ApplicationFrame, reference_in_address};
use super::shown_once::{TakeKeys, shown_once};
use crate::account::PasswordField;
use crate::client::call;
use crate::problem::Problem;
use crate::ui::{Fact, FormState, Loaded, Moment, PostForm, ProofField, SubmitButton};
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
    let kind = KeyKind::parse(&kind).ok_or(Cause::Unreadable)?;
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

#[component]
pub fn KeysPage() -> impl IntoView {
    let reference = reference_in_address();
    let query = use_query_map();
    let replaced = Memo::new(move |_| {
        let kind = query.with(|query| query.get("replace"));
        kind.as_deref().and_then(KeyKind::parse)
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
        let known = |kind| data.keys.iter().find(|key| key.kind == kind).cloned();
        let (live, test) = (known(KeyKind::Live), known(KeyKind::Test));
        view! {
            <ApplicationFrame application=data.application at="Keys">
                {shown_once(keys)}
                <h2>"Keys"</h2>
                <Key reference kind=KeyKind::Live known=live replaced form/>
                <Key reference kind=KeyKind::Test known=test replaced form/>
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
    /// What is known of the key.
    known: Option<KeyRecord>,
    /// The key whose replacement is to be confirmed.
    replaced: Memo<Option<KeyKind>>,
    form: FormState,
) -> impl IntoView {
    let (name, purpose, open_label) = match kind {
        KeyKind::Live => (
            "API key",
            "Sends for real, and pays from the balance.",
            "Get a new API key",
        ),
        KeyKind::Test => (
            "Test key",
            "Sends to nobody and costs nothing; each day it has a test balance of its own.",
            "Get a new test key",
        ),
    };
    let open = format!("/applications/{reference}/keys?replace={kind}");
    let calls = known.as_ref().map_or(0, |key| key.calls);
    let choice = move || {
        if replaced.get() == Some(kind) {
            view! { <Confirmation reference kind calls form/> }.into_any()
        } else {
            view! { <p><a class="button" href=open.clone()>{open_label}</a></p> }.into_any()
        }
    };
    view! {
        <section class="panel">
            <h3>{name}</h3>
            <p>{purpose}</p>
            {facts(known)}
            {choice}
        </section>
    }
}

/// How a key ends, and when it was made and used.
fn facts(known: Option<KeyRecord>) -> impl IntoView {
    let unknown = || "unknown".into_any();
    let (ending, made, used) = match known {
        None => (unknown(), unknown(), unknown()),
        Some(key) => {
            let from = key.used_from.map(|from| format!(" from {from}"));
            let used = match key.used_at {
                Some(at) => view! { <Moment at/> {from} }.into_any(),
                None => "not yet".into_any(),
            };
            let made = view! { <Moment at=key.made_at/> };
            (key.ending.into_any(), made.into_any(), used)
        }
    };
    view! {
        <dl class="facts">
            <Fact term="Ends in" class="key">{ending}</Fact>
            <Fact term="Made (UTC)" class="figures">{made}</Fact>
            <Fact term="Last used (UTC)" class="figures">{used}</Fact>
        </dl>
    }
}

/// The question whether a key is to be replaced, answered by the account's password.
#[component]
fn Confirmation(
    reference: Reference,
    kind: KeyKind,
    /// How many calls of the last day had the key.
    calls: i64,
    form: FormState,
) -> impl IntoView {
    let label = match kind {
        KeyKind::Live => "Replace key",
        KeyKind::Test => "Replace test key",
    };
    let used = match calls {
        0 => "No call of the last 24 hours had this key.".to_owned(),
        1 => "1 call of the last 24 hours had this key.".to_owned(),
        calls => format!("{calls} calls of the last 24 hours had this key."),
    };
    view! {
        <PostForm form>
            <p>
                "The old key stops working immediately, and every other device of your account is \
                 signed out. "
                {used}
                " Enter your account's password to go on."
            </p>
            <input type="hidden" name="reference" value=reference.to_string()/>
            <input type="hidden" name="kind" value=kind.as_str()/>
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
