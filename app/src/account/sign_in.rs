//! `/login`: signing in.

use leptos::prelude::*;

use super::fields::{EmailField, PasswordField};
use super::next_page;
#[cfg(feature = "ssr")]
use crate::portal_request::{current_request, local_path};
use crate::problem::Problem;
use crate::ui::{FormState, Page, PostForm, SubmitButton};

/// Signs in and goes on to `next`.
///
/// # Errors
/// When e-mail or password is wrong, there were too many attempts, or the service fails.
#[server(prefix = "/fn", endpoint = "sign-in")]
pub async fn sign_in(
    email: String,
    password: String,
    #[server(default)] next: String,
) -> Result<(), Problem> {
    let current = current_request()?;
    let signed_in = current
        .service()
        .sign_in(&email, &password, &current.client().address)
        .await;
    let account = signed_in.map_err(|error| Problem::from(error).typed("email", &email))?;
    current.sign_in(&account).await?;
    leptos_axum::redirect(local_path(&next));
    Ok(())
}

#[component]
pub fn SignInPage() -> impl IntoView {
    let form = FormState::new::<SignIn>("sign-in-alert");

    view! {
        <Page title="Sign in">
            <PostForm form>
                <input type="hidden" name="next" value=next_page()/>
                <EmailField form/>
                <PasswordField form/>
                <SubmitButton label="Sign in" form primary=true/>
            </PostForm>
            <p>
                <a href="/forgot">"Forgot the password?"</a>
            </p>
            <p>"New here? " <a href="/register">"Create an account"</a></p>
        </Page>
    }
}
