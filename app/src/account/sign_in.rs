//! `/login`.

use leptos::prelude::*;

use super::next_page;
use crate::problem::Problem;
use crate::ui::{Field, FormAlert, FormState, Page, PostForm, SubmitButton};
#[cfg(feature = "ssr")]
use crate::visit::{local_path, visit};

/// Signs in and goes on to `next`.
#[server(prefix = "/fn", endpoint = "sign-in")]
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
    let form = FormState::new::<SignIn>("sign-in-alert");

    view! {
        <Page title="Sign in">
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
                    name="password"
                    kind="password"
                    autocomplete="current-password"
                    required=true
                    form
                />
                <SubmitButton label="Sign in" form primary=true/>
            </PostForm>
            <p>
                <a href="/forgot">"Forgot the password?"</a>
            </p>
            <p>"New here? " <a href="/register">"Create an account"</a></p>
        </Page>
    }
}
