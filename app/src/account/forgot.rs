//! `/forgot`: requesting a password reset link.

use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use super::fields::EmailField;
use crate::page_data::PageData;
#[cfg(feature = "ssr")]
use crate::portal_request::{current_request, redirect_to};
use crate::problem::Problem;
use crate::ui::{AcceptedNotice, FormState, Loaded, Page, PostForm, SubmitButton};

/// Returns whether a reset link is mailed. Otherwise staff make it.
#[server(prefix = "/fn", endpoint = "mails-links", input = GetUrl)]
#[allow(clippy::unused_async, reason = "server functions are async")]
pub async fn load_mails_links() -> Result<bool, Problem> {
    Ok(current_request()?.service().operations().sends_mail())
}

/// Requests a reset link. The response is the same whether or not the account exists.
#[server(prefix = "/fn", endpoint = "forgot")]
pub async fn forgot(email: String) -> Result<(), Problem> {
    let current = current_request()?;
    let asked = current.service().accounts().request_reset(&email, &current.client().address).await;
    asked.map_err(|error| Problem::from(error).typed("email", &email))?;
    redirect_to("/forgot?sent=1")
}

#[component]
pub fn ForgotPage() -> impl IntoView {
    let form = FormState::new::<Forgot>("forgot-alert");
    let data = PageData::new(|| LoadMailsLinks {});
    view! { <Loaded data render=move |mails_links| view! { <Contents mails_links form/> }/> }
}

#[component]
fn Contents(mails_links: bool, form: FormState) -> impl IntoView {
    let (lead, sent) = if mails_links {
        (
            "Enter the email of your account, and we mail you a link to set a new password.",
            "If there is an account with this email, it gets a mail with a link to set a new \
             password. The link works once, within one hour.",
        )
    } else {
        (
            "This site sends no mail, so support makes the link. Enter the email of your account, \
             then contact support, who check that the account is yours and give you the link.",
            "If there is an account with this email, support has your request. Contact support to \
             get the link. It works once, within one hour.",
        )
    };
    view! {
        <Page title="Reset the password">
            <AcceptedNotice parameter="sent" sentence=sent/>
            <p class="lead">{lead}</p>
            <PostForm form>
                <EmailField form/>
                <SubmitButton label="Send reset link" form primary=true/>
            </PostForm>
            <p><a href="/login">"Back to the sign-in page"</a></p>
        </Page>
    }
}
