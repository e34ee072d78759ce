//! `/register`: creating an account.

use leptos::prelude::*;

use super::fields::{EmailField, NewPasswordField};
use super::next_page;
use crate::problem::Problem;
use crate::ui::{FormState, Page, PostForm, SubmitButton};
#[cfg(feature = "ssr")]
use {
    crate::portal_request::{CurrentRequest, current_request, local_path, redirect_to},
    domain::records::AccountRecord,
    domain::{Email, Password},
};

/// Creates an account and signs it in.
#[server(prefix = "/fn", endpoint = "register")]
pub async fn register(
    email: String,
    new_password: String,
    #[server(default)] next: String,
) -> Result<(), Problem> {
    let current = current_request()?;
    let account = create(&current, &email, &new_password)
        .await
        .map_err(|problem| problem.typed("email", &email))?;
    let signed_in = current.sign_in(&account).await;
    signed_in.map_err(Problem::after_change)?;
    redirect_to(local_path(&next))
}

#[cfg(feature = "ssr")]
async fn create(
    current: &CurrentRequest,
    email: &str,
    password: &str,
) -> Result<AccountRecord, Problem> {
    let email = Email::parse(email)?;
    let password = Password::parse(password)?;
    Ok(current.service().accounts().register(&email, &password, &current.client().address).await?)
}

#[component]
pub fn RegisterPage() -> impl IntoView {
    let form = FormState::new::<Register>("register-alert");
    let email = RwSignal::new(form.typed("email").unwrap_or_default());

    view! {
        <Page title="Create an account">
            <p class="lead">
                "One account holds your applications, their keys and their balances. You are \
                 signed in at once."
            </p>
            <PostForm form>
                <input type="hidden" name="next" value=next_page()/>
                <EmailField typed=email form/>
                <NewPasswordField label="Password" email form/>
                <SubmitButton label="Create account" form primary=true/>
            </PostForm>
            <p>"Already have an account? " <a href="/login">"Sign in"</a></p>
        </Page>
    }
}
