//! Changing an account's email: the form on `/account`, and the pages that the mailed links open,
//! `/account/email/{token}` and `/account/email/stop/{token}`.

#[cfg(feature = "ssr")]
use domain::Email;
use domain::records::AccountSettings;
use leptos::either::Either;
use leptos::prelude::*;

use super::confirm::MailedLinkPage;
use super::fields::PasswordField;
#[cfg(feature = "ssr")]
use crate::portal_request::{current_request, redirect_to, signed_in, step_up};
use crate::problem::Problem;
use crate::ui::{DateTime, Field, FormState, PostForm, StepUpField, SubmitButton};

/// Requests a new email for the account. The service mails a link to the new email.
#[server(prefix = "/fn", endpoint = "ask-email-change")]
pub async fn request_email_change(
    email: String,
    password: String,
    #[server(default)] credential: String,
) -> Result<(), Problem> {
    let keep = |problem: Problem| problem.typed("email", &email);
    let (current, account) = signed_in().await.map_err(keep)?;
    let new = Email::parse(&email).map_err(|invalid| keep(invalid.into()))?;
    // Without a second factor, the password below confirms the user's identity.
    if account.second_factor {
        step_up(&current, &account, &credential).await.map_err(keep)?;
    }
    let requested =
        current.service().accounts().request_email_change(&account, &password, &new).await;
    requested.map_err(|error| keep(error.into()))?;
    redirect_to("/account?email-asked=1")
}

/// Cancels the requested change.
#[server(prefix = "/fn", endpoint = "cancel-email-change")]
pub async fn cancel_email_change() -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    current.service().accounts().cancel_email_change(account.id).await?;
    redirect_to("/account?email-canceled=1")
}

/// Confirms an account's new email with the token mailed to it. The change takes effect at once or
/// a day later.
#[server(prefix = "/fn", endpoint = "change-email")]
pub async fn change_email(token: String) -> Result<(), Problem> {
    let current = current_request()?;
    let done = match current.service().accounts().change_email(&token).await? {
        Some(_) => "/account/email/done?confirmed=1",
        None => "/account/email/done?changed=1",
    };
    redirect_to(done)
}

/// Cancels a change of an account's email with the token mailed to the present email. Works without
/// signing in, since a thief may hold the account's only session.
#[server(prefix = "/fn", endpoint = "stop-email-change")]
pub async fn stop_email_change(token: String) -> Result<(), Problem> {
    let current = current_request()?;
    current.service().accounts().stop_email_change(&token).await?;
    redirect_to("/account/email/stop/done?stopped=1")
}

/// The forms for the account's email.
#[derive(Clone, Copy)]
pub struct EmailForms {
    pub request: FormState,
    pub cancel: FormState,
}

impl EmailForms {
    pub fn new() -> Self {
        Self {
            request: FormState::new::<RequestEmailChange>("email-alert"),
            cancel: FormState::new::<CancelEmailChange>("email-cancel-alert"),
        }
    }
}

#[component]
pub fn EmailSection(
    settings: AccountSettings,
    sends_mail: bool,
    forms: EmailForms,
) -> impl IntoView {
    let EmailForms { request, cancel } = forms;
    let effective_at = settings.new_email_at;
    let waiting = settings.new_email.map(|email| {
        let email = view! { <strong>{email}</strong> };
        view! {
            {match effective_at {
                Some(at) => {
                    Either::Left(view! {
                        <p>
                            {email} " is confirmed and becomes the email of your account at "
                            <DateTime at/> ". Until then you sign in with the present email."
                        </p>
                    })
                }
                None => {
                    Either::Right(view! {
                        <p>
                            "We mailed a link to " {email}
                            ". Open it to confirm that the address is yours. Until then nothing \
                             changes."
                        </p>
                    })
                }
            }}
            <p class="fine">
                "Changing your password or signing out another device also cancels this change."
            </p>
            <PostForm form=cancel>
                <SubmitButton label="Keep the present email" form=cancel/>
            </PostForm>
        }
    });
    view! {
        <h2>"Email"</h2>
        {waiting}
        {if sends_mail {
            Either::Left(view! {
                <p>
                    "We mail a link to the new email, and a notice to the present one. Nothing \
                     changes before you open the link. The change then takes effect after 24 \
                     hours, or at once if you confirm it with a second factor that you have used \
                     for a day."
                </p>
                <PostForm form=request>
                    <Field label="New email" name="email" kind="email" required=true form=request/>
                    <PasswordField form=request/>
                    <StepUpField form=request/>
                    <SubmitButton label="Change email" form=request/>
                </PostForm>
            })
        } else {
            Either::Right(view! {
                <p>"Contact support to change your email, because this site sends no mail."</p>
            })
        }}
    }
}

#[component]
pub fn ChangeEmailPage() -> impl IntoView {
    let notices = [
        ("changed", "Your email is changed. Sign in with the new one from now on."),
        (
            "confirmed",
            "The address is confirmed. It becomes the email of your account in 24 hours. We \
             mailed both addresses. Until then, you can cancel the change on the account page.",
        ),
    ];
    let form = FormState::new::<ChangeEmail>("change-email-alert");
    view! {
        <MailedLinkPage
            title="Change your email"
            notices=notices.into()
            lead="Press the button to confirm that this address is yours and to use it for your \
                  account."
            button="Use this email"
            form
            leads_to=("/account", "Account")
        />
    }
}

/// Works without signing in.
#[component]
pub fn StopEmailChangePage() -> impl IntoView {
    let stopped = "Your account keeps its email. Set a new password now, because the person who \
                   asked for the change knows the old one.";
    let form = FormState::new::<StopEmailChange>("stop-email-alert");
    view! {
        <MailedLinkPage
            title="Stop the change of your email"
            notices=vec![("stopped", stopped)]
            lead="Press the button if you didn't ask for another email. Your account then keeps \
                  the email that it has."
            button="Stop the change"
            form
            leads_to=("/forgot", "Set a new password")
        />
    }
}
