//! `/forgot`.

use leptos::form::ActionForm;
use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use crate::client::PortalClient;
use crate::problem::Problem;
use crate::ui::{Field, FormAlert, Page, SubmitButton, problem_of};
#[cfg(feature = "ssr")]
use crate::visit::visit;

/// Asks for a reset link. The answer is the same whether or not the account exists.
#[server(prefix = "/fn", endpoint = "forgot", client = PortalClient)]
pub async fn forgot(email: String) -> Result<(), Problem> {
    let visit = visit()?;
    let asked = visit
        .service()
        .request_reset(&email, &visit.client().address)
        .await;
    asked.map_err(|error| Problem::from(error).typed("email", &email))?;
    leptos_axum::redirect("/forgot?sent=1");
    Ok(())
}

#[component]
pub fn ForgotPage() -> impl IntoView {
    let action = ServerAction::<Forgot>::new();
    let problem = problem_of(action);
    let alert = "forgot-alert";
    let query = use_query_map();
    let sent = move || query.with(|query| query.get("sent").is_some());

    view! {
        <Page title="Reset the password">
            <div role="status">
                {move || {
                    sent()
                        .then(|| {
                            view! {
                                <p class="notice">
                                    "If there is an account with this e-mail, a link to set a new password is on its way. It works for one hour, once."
                                </p>
                            }
                        })
                }}
            </div>
            <p class="lead">"Enter the e-mail of your account, and we send you a link to set a new password."</p>
            <ActionForm action attr:class="form">
                <FormAlert id=alert problem/>
                <Field
                    label="Email"
                    name="email"
                    kind="email"
                    autocomplete="username"
                    required=true
                    problem=(problem, alert)
                />
                <SubmitButton label="Send reset link" pending=action.pending() primary=true/>
            </ActionForm>
            <p>
                <a href="/login">"Back to the sign-in page"</a>
            </p>
        </Page>
    }
}
