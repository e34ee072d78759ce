//! `/register`.

use domain::Password;
use leptos::prelude::*;

use super::next_page;
#[cfg(feature = "ssr")]
use crate::portal_request::{current_request, local_path};
use crate::problem::{Cause, Problem};
use crate::ui::{Field, FormAlert, FormState, Page, PostForm, SubmitButton};

/// Creates an account and signs in at once.
#[server(prefix = "/fn", endpoint = "register")]
pub async fn register(email: String, new_password: String, next: String) -> Result<(), Problem> {
    let current = current_request()?;
    let account = create(&current, &email, &new_password)
        .await
        .map_err(|problem| problem.typed("email", &email))?;
    current.sign_in(&account).await?;
    leptos_axum::redirect(local_path(&next));
    Ok(())
}

#[cfg(feature = "ssr")]
async fn create(
    current: &crate::portal_request::CurrentRequest,
    email: &str,
    password: &str,
) -> Result<domain::records::AccountRecord, Problem> {
    let email = domain::Email::parse(email)?;
    let password = Password::parse(password)?;
    Ok(current
        .service()
        .register(&email, &password, &current.client().address)
        .await?)
}

/// The sentence about a password that can't be used, for the field where it is chosen.
pub(super) fn judge_password(text: &str) -> Option<String> {
    Password::parse(text)
        .err()
        .map(|_| Cause::Password.sentence().into_owned())
}

#[component]
pub fn RegisterPage() -> impl IntoView {
    let form = FormState::new::<Register>("register-alert");

    view! {
        <Page title="Create an account">
            <p class="lead">
                "One account holds your applications, their keys and their balances. You are signed in as soon as it exists."
            </p>
            <PostForm form>
                <FormAlert form/>
                <input type="hidden" name="next" value=next_page()/>
                <Field
                    label="Email"
                    name="email"
                    kind="email"
                    autocomplete="username"
                    required=true
                    form
                />
                <Field
                    label="Password"
                    name="new_password"
                    kind="password"
                    autocomplete="new-password"
                    required=true
                    hint=Cause::Password.sentence()
                    judge=judge_password
                    form
                />
                <SubmitButton label="Create account" form primary=true/>
            </PostForm>
            <p>"You have an account? " <a href="/login">"Sign in"</a></p>
        </Page>
    }
}
