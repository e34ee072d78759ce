//! `/login/code`: the second step of signing in.

use leptos::either::Either;
use leptos::prelude::*;
use leptos_router::location::Url;

use super::fields::{CodeField, RecoveryCodeField};
use super::next_page;
use crate::problem::Problem;
use crate::ui::{FormState, Page, PasskeyButton, PostForm, SubmitButton, parameter};
#[cfg(feature = "ssr")]
use {
    crate::portal_request::{current_request, landing_path, local_path, redirect_to},
    service::SecondStep,
};

/// Returns the address of this page. It leads on to `next`, and accepts a passkey if `passkeys` is
/// true.
#[cfg(feature = "ssr")]
pub fn code_path(next: &str, passkeys: bool) -> String {
    let passkeys = if passkeys { "passkey=1&" } else { "" };
    format!("/login/code?{passkeys}next={}", Url::escape(local_path(next)))
}

/// Accepts a code of the authenticator app, a recovery code or a passkey's response, signs in and
/// redirects to `next`.
#[server(prefix = "/fn", endpoint = "sign-in-code")]
pub async fn sign_in_code(
    #[server(default)] code: String,
    #[server(default)] recovery_code: String,
    #[server(default)] passkey: String,
    #[server(default)] next: String,
) -> Result<(), Problem> {
    let step = if !passkey.is_empty() {
        SecondStep::Passkey(passkey)
    } else if recovery_code.is_empty() {
        SecondStep::Code(code)
    } else {
        SecondStep::RecoveryCode(recovery_code)
    };
    let account = current_request()?.sign_in_by_code(&step).await?;
    redirect_to(landing_path(&account, &next))
}

#[component]
pub fn SignInCodePage() -> impl IntoView {
    let form = FormState::new::<SignInCode>("sign-in-code-alert").loading_next();
    let (recovery, passkey) = (parameter("recovery"), parameter("passkey"));
    let by_recovery = move || recovery.read().is_some();
    let passkeys = move || passkey.read().is_some();
    let escaped = Url::escape(&next_page());
    let other = move || {
        let recovery = if by_recovery() { "" } else { "recovery=1&" };
        let passkey = if passkeys() { "passkey=1&" } else { "" };
        format!("/login/code?{recovery}{passkey}next={escaped}")
    };

    view! {
        <Page title="Enter your code">
            <p class="lead">
                {move || {
                    if by_recovery() {
                        "Enter one of the recovery codes that you kept when you set up two-factor. \
                         Each works once."
                    } else {
                        "Enter the code that your authenticator app shows for Heliograph."
                    }
                }}
            </p>
            <PostForm form>
                <input type="hidden" name="next" value=next_page()/>
                {move || {
                    if by_recovery() {
                        Either::Left(view! { <RecoveryCodeField form/> })
                    } else {
                        Either::Right(view! { <CodeField form/> })
                    }
                }}
                <SubmitButton label="Confirm" form primary=true/>
                {move || passkeys().then(|| view! { <PasskeyButton form field="passkey"/> })}
            </PostForm>
            <p>
                {move || if by_recovery() { "Have the app? " } else { "No phone at hand? " }}
                // A new page has no problem of the other field.
                <a href=other rel="external">{move || if by_recovery() { "App code" } else { "Recovery code" }}</a>
            </p>
            <p><a href="/login">"Back to the sign-in page"</a></p>
        </Page>
    }
}
