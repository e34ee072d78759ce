//! `/forgot`: requesting a password reset link.

use leptos::prelude::*;

use super::fields::EmailField;
#[cfg(feature = "ssr")]
use crate::portal_request::current_request;
use crate::problem::Problem;
use crate::ui::{AcceptedNotice, FormState, Page, PostForm, SubmitButton};

/// Requests a reset link. The response is the same whether or not the account exists.
#[server(prefix = "/fn", endpoint = "forgot")]
pub async fn forgot(email: String) -> Result<(), Problem> {
    let current = current_request()?;
    let asked = current.service().accounts().request_reset(&email, &current.client().address).await;
    asked.map_err(|error| Problem::from(error).typed("email", &email))?;
    leptos_axum::redirect("/forgot?sent=1");
    Ok(())
}

#[component]
pub fn ForgotPage() -> impl IntoView {
    let form = FormState::new::<Forgot>("forgot-alert");

    view! {
        <Page title="Reset the password">
            <AcceptedNotice
                parameter="sent"
                sentence="If there is an account with this email, it gets a mail with a link to \
                          set a new password. The link works once, within one hour."
            />
            <p class="lead">
                "Enter the email of your account, and we mail you a link to set a new password."
            </p>
            <PostForm form>
                <EmailField form/>
                <SubmitButton label="Send reset link" form primary=true/>
            </PostForm>
            <p><a href="/login">"Back to the sign-in page"</a></p>
        </Page>
    }
}
