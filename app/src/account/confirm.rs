//! `/confirm/{token}`: confirming an email, and the notice for accounts that haven't done it yet.

use leptos::prelude::*;

#[cfg(feature = "ssr")]
use crate::portal_request::{current_request, redirect_to, signed_in};
use crate::problem::Problem;
use crate::ui::{AcceptedNotice, FormState, Page, PostForm, SubmitButton, in_path, parameter};

/// Confirms an email with the token from the mail.
#[server(prefix = "/fn", endpoint = "confirm")]
pub async fn confirm(token: String) -> Result<(), Problem> {
    let current = current_request()?;
    current.service().accounts().confirm_email(&token).await?;
    redirect_to("/confirm/done?confirmed=1")
}

/// Sends the confirmation mail again.
#[server(prefix = "/fn", endpoint = "mail-confirmation")]
pub async fn mail_confirmation() -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    current.service().accounts().mail_confirmation(account.id).await?;
    redirect_to("/applications/new?mailed=1")
}

#[component]
pub fn ConfirmPage() -> impl IntoView {
    let form = FormState::new::<Confirm>("confirm-alert");
    view! {
        <MailedLinkPage
            title="Confirm your email"
            notices=vec![("confirmed", "Your email is confirmed.")]
            lead="Press the button to confirm that the address is yours."
            button="Confirm"
            form
            leads_to=("/applications", "My Applications")
        />
    }
}

/// A page that a mailed link opens. The action needs a click, because mail scanners open links. The
/// form has the token from the page's address.
#[component]
pub fn MailedLinkPage(
    title: &'static str,
    /// The outcomes: the parameter that the form's redirect adds, and the notice that it shows.
    notices: Vec<(&'static str, &'static str)>,
    lead: &'static str,
    /// The button's text.
    button: &'static str,
    form: FormState,
    /// The page to go on to: its path and its name.
    leads_to: (&'static str, &'static str),
) -> impl IntoView {
    let token = in_path("token").get_untracked();
    let outcomes: Vec<_> = notices.iter().map(|(name, _)| parameter(name)).collect();
    let is_done = move || outcomes.iter().any(|outcome| outcome.read().is_some());
    let notices: Vec<_> = notices
        .into_iter()
        .map(|(parameter, sentence)| view! { <AcceptedNotice parameter sentence/> })
        .collect();
    let action = move || {
        let token = token.clone();
        view! {
            <p class="lead">{lead}</p>
            <PostForm form>
                <input type="hidden" name="token" value=token/>
                <SubmitButton label=button form primary=true/>
            </PostForm>
        }
    };
    let (path, name) = leads_to;
    view! {
        <Page title>
            {notices}
            {move || (!is_done()).then(&action)}
            <p><a href=path>{name}</a></p>
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
        <PostForm form><SubmitButton label="Send the mail again" form/></PostForm>
    }
}
