//! Creating and using passkeys in the browser. Needs scripts; without them nothing is shown.

use leptos::prelude::*;

use super::FormState;
#[cfg(feature = "ssr")]
use crate::portal_request::current_request;
use crate::problem::Problem;

/// Returns the browser's options for using a passkey instead of a code, as JSON. The passkeys are
/// those of the account that is signed in or that has yet to enter its code.
#[server(prefix = "/fn", endpoint = "ask-passkey")]
pub async fn passkey_options() -> Result<String, Problem> {
    let current = current_request()?;
    let token = current.token().unwrap_or_default();
    Ok(current.service().accounts().request_passkey(&token).await?)
}

/// Whether this browser can create and use passkeys. False on the server and until the page is
/// hydrated.
pub fn passkeys_run() -> RwSignal<bool> {
    let run = RwSignal::new(false);
    // Effects run only in the browser.
    Effect::new(move || run.set(runs()));
    run
}

#[cfg(not(feature = "hydrate"))]
fn runs() -> bool {
    false
}

/// A button that uses a passkey and submits its form with the passkey's response in a field.
#[component]
pub fn PasskeyButton(form: FormState, field: &'static str) -> impl IntoView {
    let run = passkeys_run();
    move || {
        run.get().then(|| {
            view! {
                <button
                    type="button"
                    class="button"
                    disabled=move || form.pending.get()
                    on:click=move |event| use_passkey(&event, form, field)
                >
                    "Use a passkey"
                </button>
            }
        })
    }
}

#[cfg(not(feature = "hydrate"))]
fn use_passkey(_event: &leptos::ev::MouseEvent, _form: FormState, _field: &'static str) {}

#[cfg(feature = "hydrate")]
pub use browser::make;
#[cfg(feature = "hydrate")]
use browser::{runs, use_passkey};

#[cfg(feature = "hydrate")]
mod browser {
    use leptos::prelude::*;
    use leptos::wasm_bindgen::{JsCast as _, JsValue};
    use wasm_bindgen_futures::JsFuture;
    use web_sys::js_sys::{Function, JSON, Object, Promise, Reflect};
    use web_sys::{FormData, HtmlButtonElement};

    use super::super::form::{FormState, send};
    use super::PasskeyOptions;
    use crate::client::call;
    use crate::problem::{Cause, Problem};

    /// An operation of a browser on passkeys.
    struct Operation {
        /// The method of `navigator.credentials`.
        method: &'static str,
        /// The function of `PublicKeyCredential` that parses the method's options.
        parse: &'static str,
    }

    const MAKE: Operation = Operation { method: "create", parse: "parseCreationOptionsFromJSON" };
    const USE: Operation = Operation { method: "get", parse: "parseRequestOptionsFromJSON" };

    /// Whether this browser supports passkeys and can parse their options from JSON.
    pub fn runs() -> bool {
        let class = credential_class();
        class.is_ok_and(|class| function(&class, USE.parse).is_ok())
    }

    /// Creates a passkey from options in JSON. Returns the credential as JSON, or `None` if the
    /// user or the browser refuses.
    pub async fn make(options: &str) -> Option<String> {
        perform(&MAKE, options).await.ok()
    }

    pub fn use_passkey(event: &leptos::ev::MouseEvent, form: FormState, field: &'static str) {
        let button: HtmlButtonElement = event_target(event);
        let Some(element) = button.form() else {
            return;
        };
        if form.pending.get_untracked() {
            return;
        }
        form.pending.set(true);
        leptos::task::spawn_local(async move {
            match used().await {
                Ok(answer) => {
                    let Ok(fields) = FormData::new_with_form(&element) else {
                        form.pending.try_set(false);
                        return;
                    };
                    // Setting a text field can't fail.
                    let _ = fields.set_with_str(field, &answer);
                    if let Some((name, value)) = form.sent_by.try_get_value().flatten() {
                        let _ = fields.set_with_str(&name, &value);
                    }
                    send(form, fields).await;
                }
                Err(problem) => {
                    form.pending.try_set(false);
                    form.problem.try_update(|shown| match shown {
                        // Keep the typed texts: they also identify the form on the page.
                        Some(shown) => shown.cause = problem.cause,
                        None => *shown = Some(problem),
                    });
                }
            }
        });
    }

    async fn used() -> Result<String, Problem> {
        let options = call(PasskeyOptions {}).await?;
        let answer = perform(&USE, &options).await;
        answer.map_err(|_| Cause::NoPasskeyUsed.into())
    }

    async fn perform(operation: &Operation, options: &str) -> Result<String, JsValue> {
        let class = credential_class()?;
        let options = JSON::parse(options)?;
        let options = function(&class, operation.parse)?.call1(&class, &options)?;
        let wanted = Object::new();
        Reflect::set(&wanted, &"publicKey".into(), &options)?;
        let credentials = Reflect::get(&window().navigator(), &"credentials".into())?;
        let promise = function(&credentials, operation.method)?.call1(&credentials, &wanted)?;
        let credential = JsFuture::from(Promise::resolve(&promise)).await?;
        Ok(JSON::stringify(&credential)?.into())
    }

    fn credential_class() -> Result<JsValue, JsValue> {
        Reflect::get(&window(), &"PublicKeyCredential".into())
    }

    fn function(object: &JsValue, name: &str) -> Result<Function, JsValue> {
        Reflect::get(object, &name.into())?.dyn_into()
    }
}
