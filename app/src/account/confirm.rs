//! `/confirm/{token}`: confirming an email, and the notice for accounts that haven't done it yet.

use leptos::prelude::*;
use leptos_router::hooks::{use_params_map, use_query_map};

#[cfg(feature = "ssr")]
use crate::portal_request::{current_request, signed_in};
use crate::problem::Problem;
use crate::ui::{AcceptedNotice, FormState, Page, PostForm, SubmitButton};

/// Confirms an email with the token from the mail.
#[server(prefix = "/fn", endpoint = "confirm")]
pub async fn confirm(token: String) -> Result<(), Problem> {
    let current = current_request()?;
    current.service().accounts().confirm_email(&token).await?;
    leptos_axum::redirect("/confirm/done?confirmed=1");
    Ok(())
}

/// Sends the confirmation mail again.
#[server(prefix = "/fn", endpoint = "mail-confirmation")]
pub async fn mail_confirmation() -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    current.service().accounts().mail_confirmation(account.id).await?;
    leptos_axum::redirect("/applications/new?mailed=1");
    Ok(())
}

/// Confirms after a click, not when the link is opened: mail scanners open links.
#[component]
pub fn ConfirmPage() -> impl IntoView {
    let form = FormState::new::<Confirm>("confirm-alert");
    let params = use_params_map();
    let token = params.with_untracked(|params| params.get("token")).unwrap_or_default();
    let query = use_query_map();
    let is_done = move || query.with(|query| query.get("confirmed").is_some());
    view! {
        <Page title="Confirm your email">
            <AcceptedNotice parameter="confirmed" sentence="Your email is confirmed."/>
            {move || {
                (!is_done())
                    .then(|| {
                        let token = token.clone();
                        view! {
                            <p class="lead">
                                "Press the button to confirm that the address is yours."
                            </p>
                            <PostForm form>
                                <input type="hidden" name="token" value=token/>
                                <SubmitButton label="Confirm" form primary=true/>
                            </PostForm>
                        }
                    })
            }}
            <p>
                <a href="/applications">"My Applications"</a>
            </p>
        </Page>
    }
}

/// Says that the account can't create applications yet, with a button that sends the mail again.
#[component]
pub fn Unconfirmed(email: String) -> impl IntoView {
    let form = FormState::new::<MailConfirmation>("confirmation-alert");
    view! {
        <div class="notice">
            <p>
                "Confirm your email first: open the link in the mail that we sent to "
                <strong>{email}</strong>
                ". Then you can create applications."
            </p>
        </div>
        <AcceptedNotice
            parameter="mailed"
            sentence="The mail is sent again. It may take a minute to arrive."
        />
        <PostForm form>
            <SubmitButton label="Send the mail again" form/>
        </PostForm>
    }
}
