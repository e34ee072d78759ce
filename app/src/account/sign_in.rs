//! `/login`.

use leptos::form::ActionForm;
use leptos::prelude::*;

use super::next_page;
use crate::client::PortalClient;
use crate::problem::Problem;
use crate::ui::{Field, FormAlert, Page, SubmitButton, problem_of};
#[cfg(feature = "ssr")]
use crate::visit::{local_path, visit};

/// Signs in and goes on to `next`.
#[server(prefix = "/fn", endpoint = "sign-in", client = PortalClient)]
pub async fn sign_in(email: String, password: String, next: String) -> Result<(), Problem> {
    let visit = visit()?;
    let signed_in = visit
        .service()
        .sign_in(&email, &password, &visit.client().address)
        .await;
    let account = signed_in.map_err(|error| Problem::from(error).typed("email", &email))?;
    visit.sign_in(&account).await?;
    leptos_axum::redirect(local_path(&next));
    Ok(())
}

#[component]
pub fn SignInPage() -> impl IntoView {
    let action = ServerAction::<SignIn>::new();
    let problem = problem_of(action);
    let alert = "sign-in-alert";

    view! {
        <Page title="Sign in">
            <ActionForm action attr:class="form">
                <FormAlert id=alert problem/>
                <input type="hidden" name="next" value=next_page()/>
                <Field
                    label="Email"
                    name="email"
                    kind="email"
                    autocomplete="username"
                    required=true
                    problem=(problem, alert)
                />
                <Field
                    label="Password"
                    name="password"
                    kind="password"
                    autocomplete="current-password"
                    required=true
                    problem=(problem, alert)
                />
                <SubmitButton label="Sign in" pending=action.pending() primary=true/>
            </ActionForm>
            <p>
                <a href="/forgot">"Forgot the password?"</a>
            </p>
            <p>"New here? " <a href="/register">"Create an account"</a></p>
        </Page>
    }
}
