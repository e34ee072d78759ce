//! `/reset/{token}`: setting a new password through a mailed link.

use leptos::prelude::*;

use super::fields::NewPasswordField;
use crate::problem::Problem;
use crate::ui::{FormState, Page, PostForm, SubmitButton, in_path};
#[cfg(feature = "ssr")]
use {crate::portal_request::current_request, domain::Password};

/// Sets a new password with the token of a reset link, and signs out every device. A token works
/// once.
#[server(prefix = "/fn", endpoint = "reset")]
pub async fn reset(token: String, new_password: String) -> Result<(), Problem> {
    let password = Password::parse(&new_password)?;
    current_request()?.service().accounts().reset_password(&token, &password).await?;
    leptos_axum::redirect("/login");
    Ok(())
}

#[component]
pub fn ResetPage() -> impl IntoView {
    let form = FormState::new::<Reset>("reset-alert");
    let token = in_path("token").get_untracked();

    view! {
        <Page title="Set a new password">
            <p class="lead">"Every device that is signed in to the account will be signed out."</p>
            <PostForm form>
                <input type="hidden" name="token" value=token/>
                <NewPasswordField email=RwSignal::new(String::new()) form/>
                <SubmitButton label="Set new password" form primary=true/>
            </PostForm>
            <p>"Has the link expired? " <a href="/forgot">"Ask for a new one"</a></p>
        </Page>
    }
}
