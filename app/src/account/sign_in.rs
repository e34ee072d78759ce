//! `/login`: signing in.

use leptos::prelude::*;

use super::fields::{EmailField, PasswordField};
use super::next_page;
use crate::problem::Problem;
use crate::ui::{AcceptedNotice, FormState, Page, PostForm, SubmitButton};
#[cfg(feature = "ssr")]
use {
    super::sign_in_code::code_path,
    crate::portal_request::{current_request, landing_path},
};

/// Signs in and redirects to `next`. If the account has a second factor, redirects to the page for
/// the code first.
#[server(prefix = "/fn", endpoint = "sign-in")]
pub async fn sign_in(
    email: String,
    password: String,
    #[server(default)] next: String,
) -> Result<(), Problem> {
    let current = current_request()?;
    let signed_in =
        current.service().accounts().sign_in(&email, &password, &current.client().address).await;
    let account = signed_in.map_err(|error| Problem::from(error).typed("email", &email))?;
    current.sign_in(&account).await?;
    if account.second_factor {
        let passkeys = current.service().accounts().has_passkeys(account.id).await?;
        leptos_axum::redirect(&code_path(&next, passkeys));
    } else {
        leptos_axum::redirect(landing_path(&account, &next));
    }
    Ok(())
}

#[component]
pub fn SignInPage() -> impl IntoView {
    let form = FormState::new::<SignIn>("sign-in-alert").loading_next();

    view! {
        <Page title="Sign in">
            <AcceptedNotice parameter="closed" sentence="Your account is closed."/>
            <AcceptedNotice
                parameter="reset"
                sentence="Your password is changed. Sign in with the new one."
            />
            {(!next_page().is_empty())
                .then(|| {
                    view! {
                        <p class="notice">
                            "Sign in to open the page. If you were filling in a form, nothing was \
                             changed, and the form comes back with your text."
                        </p>
                    }
                })}
            <PostForm form>
                <input type="hidden" name="next" value=next_page()/>
                <EmailField form/>
                <PasswordField form/>
                <SubmitButton label="Sign in" form primary=true/>
            </PostForm>
            <p class="fine">
                "You are signed out after 30 minutes without use, and after 12 hours in any case."
            </p>
            <p><a href="/forgot">"Forgot the password?"</a></p>
            <p>"New here? " <a href="/register">"Create an account"</a></p>
        </Page>
    }
}
