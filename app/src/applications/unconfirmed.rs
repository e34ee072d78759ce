//! The setting for messages whose carrier response is lost: send them again or not.

use domain::{LostAnswer, Reference};
use leptos::prelude::*;

#[cfg(feature = "ssr")]
use crate::portal_request::{redirect_to, signed_in};
use crate::problem::Problem;
use crate::ui::{Choice, FormState, PostForm, SubmitButton};

/// Saves the setting.
#[server(prefix = "/fn", endpoint = "set-lost-answer")]
pub async fn set_lost_answer(reference: Reference, lost_answer: LostAnswer) -> Result<(), Problem> {
    let keep = |problem: Problem| problem.typed("lost_answer", lost_answer.as_str());
    let (current, account) = signed_in().await.map_err(keep)?;
    let service = current.service();
    service.applications().set_lost_answer(account.id, reference, lost_answer).await?;
    let page = format!("/applications/{reference}/settings?unconfirmed=1");
    redirect_to(&page)
}

/// The current setting, and the form to change it.
#[component]
pub fn UnconfirmedSection(
    reference: Reference,
    in_force: LostAnswer,
    form: FormState,
) -> impl IntoView {
    let options = LostAnswer::ALL
        .into_iter()
        .map(|policy| (policy.as_str().to_owned(), policy.label().to_owned()))
        .collect();
    let chosen = form.typed("lost_answer");
    let chosen = chosen.unwrap_or_else(|| in_force.as_str().to_owned());
    view! {
        <section>
            <h2 id="unconfirmed">"Unconfirmed messages"</h2>
            <p>
                "Sometimes a connection breaks before the carrier has said whether it accepted a \
                 message."
            </p>
            <ul>
                <li>
                    <strong>{LostAnswer::Hold.label()}</strong>
                    ": the message is never sent again, and may never arrive."
                </li>
                <li>
                    <strong>{LostAnswer::Resend.label()}</strong>
                    ": shortly after, the message is sent a second time, and may arrive twice. You \
                     pay once."
                </li>
            </ul>
            <p>"In force: " <strong>{in_force.label()}</strong></p>
            <PostForm form>
                <input type="hidden" name="reference" value=reference.to_string()/>
                <Choice
                    label="If a carrier's answer is lost"
                    name="lost_answer"
                    options
                    chosen
                />
                <SubmitButton label="Save" form/>
            </PostForm>
        </section>
    }
}
