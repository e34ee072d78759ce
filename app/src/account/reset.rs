//! `/reset/{token}`: setting a new password through a mailed link.

use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use super::fields::NewPasswordField;
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{FormState, Loaded, Page, PostForm, SubmitButton, in_path};
#[cfg(feature = "ssr")]
use {
    crate::portal_request::{current_request, redirect_to},
    domain::Password,
};

/// Returns whether a reset link is valid, so that nobody thinks up a password for one that isn't.
#[server(prefix = "/fn", endpoint = "reset-link", input = GetUrl)]
pub async fn load_reset_link(#[server(default)] token: String) -> Result<bool, Problem> {
    Ok(current_request()?.service().accounts().is_reset_valid(&token).await?)
}

/// Sets a new password with the token of a reset link, and signs out every device. A token works
/// once.
#[server(prefix = "/fn", endpoint = "reset")]
pub async fn reset(token: String, new_password: String) -> Result<(), Problem> {
    let password = Password::parse(&new_password)?;
    current_request()?.service().accounts().reset_password(&token, &password).await?;
    redirect_to("/login?reset=1")
}

#[component]
pub fn ResetPage() -> impl IntoView {
    let form = FormState::new::<Reset>("reset-alert");
    let token = in_path("token");
    let data = PageData::new(move || LoadResetLink { token: token.get() });
    let render = move |valid: bool| {
        if valid {
            view! { <NewPassword token=token.get_untracked() form/> }.into_any()
        } else {
            view! { <InvalidLink/> }.into_any()
        }
    };
    view! { <Loaded data render/> }
}

#[component]
fn NewPassword(token: String, form: FormState) -> impl IntoView {
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

#[component]
fn InvalidLink() -> impl IntoView {
    view! {
        <Page title="This link doesn't work">
            <p class="notice">
                "A reset link works once, within an hour. This one was used, is too old, or isn't \
                 complete. Your password wasn't changed by opening it."
            </p>
            <p class="buttons">
                <a class="button button-primary" href="/forgot">"Ask for a new link"</a>
                <a class="button" href="/login">"Sign in"</a>
            </p>
        </Page>
    }
}
