//! An application's sender name, and the request for another one.

use domain::records::{ApplicationRecord, SenderRequestRecord};
use domain::{Reference, SenderStatus};
use leptos::prelude::*;

use super::new::sender_name_fault;
use crate::problem::Problem;
use crate::ui::{Field, FormState, Moment, PostForm, StateMark, SubmitButton, answered_within};
#[cfg(feature = "ssr")]
use {crate::portal_request::signed_in, crate::problem::Cause, domain::SenderName};

/// Asks for a sender name; staff accept or reject it.
///
/// # Errors
/// When nobody is signed in, the application isn't the account's, the name can't be used, or the
/// service fails.
#[server(prefix = "/fn", endpoint = "request-sender-name")]
pub async fn request_sender_name(reference: Reference, sender: String) -> Result<(), Problem> {
    let keep = |problem: Problem| problem.typed("sender", &sender);
    let (current, account) = signed_in().await.map_err(keep)?;
    let name = named(&sender).map_err(keep)?;
    let asked = current
        .service()
        .request_sender_name(account.id, reference, &name)
        .await;
    asked.map_err(|error| keep(error.into()))
}

#[cfg(feature = "ssr")]
fn named(sender: &str) -> Result<SenderName, Problem> {
    if sender.is_empty() {
        return Err(Cause::SenderNameMissing.into());
    }
    Ok(SenderName::parse(sender)?)
}

/// The sender name in use, the one that is asked for, and the form to ask for another one.
#[component]
pub fn SenderSection(
    application: ApplicationRecord,
    /// How long a pending request usually takes.
    usual_ms: Option<i64>,
    form: FormState,
) -> impl IntoView {
    view! {
        <section>
            <h2 id="sender-name">"Sender name"</h2>
            <p>{in_use(application.sender_name.as_deref())}</p>
            {application.requested_sender.map(|request| view! { <Request request usual_ms/> })}
            <PostForm form>
                <input type="hidden" name="reference" value=application.reference.to_string()/>
                <Field
                    label="Sender name"
                    name="sender"
                    hint="1 to 11 letters and digits. Acceptance is not guaranteed."
                    check=sender_name_fault
                    form
                />
                <SubmitButton label="Request sender name" form/>
            </PostForm>
        </section>
    }
}

fn in_use(name: Option<&str>) -> String {
    match name {
        Some(name) => format!("Messages are sent as {name}."),
        None => "The application has no accepted sender name.".to_owned(),
    }
}

#[component]
fn Request(request: SenderRequestRecord, usual_ms: Option<i64>) -> impl IntoView {
    let words = match request.status {
        SenderStatus::Pending => "We check the name; until we accept it, it can't be used.",
        SenderStatus::Rejected => "It was not accepted:",
        SenderStatus::Accepted | SenderStatus::Replaced => "",
    };
    view! {
        <p class="notice">
            <strong>{request.name}</strong>
            " "
            <StateMark state=request.status/>
            " · Requested "
            <Moment at=request.requested_at/>
            ". "
            {words}
            " "
            {(request.status == SenderStatus::Pending).then(|| answered_within(usual_ms))}
            {request.reason}
        </p>
    }
}
