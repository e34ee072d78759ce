//! Delivering events again: one, or all since a time.

use domain::Reference;
use leptos::prelude::*;

use crate::problem::Problem;
use crate::time_zone::ShownZone;
use crate::ui::{Field, FormState, PostForm, SubmitButton};
#[cfg(feature = "ssr")]
use {
    super::manage::{access, change, page},
    crate::portal_request::redirect_to,
    crate::problem::Cause,
    domain::{EventId, Timestamp},
    service::WebhookChange,
};

/// Delivers an event to an endpoint again.
#[server(prefix = "/fn", endpoint = "replay-event")]
pub async fn replay_event(
    reference: Reference,
    webhookid: String,
    event: String,
) -> Result<(), Problem> {
    let (current, access, id) = access(reference, &webhookid).await?;
    let event = EventId::parse(&event).ok_or(Cause::Unreadable)?;
    change(&current, &access, WebhookChange::Replay(id, event)).await?;
    redirect_to(&page(reference, id, "?replayed=1"))
}

/// Delivers all events since a time that an endpoint hasn't taken. The time is in the page's time
/// zone.
#[server(prefix = "/fn", endpoint = "replay-since")]
pub async fn replay_since(
    reference: Reference,
    webhookid: String,
    since: String,
) -> Result<(), Problem> {
    let with_text = |problem: Problem| problem.typed("since", &since);
    let (current, access, id) = access(reference, &webhookid).await.map_err(with_text)?;
    let local = Timestamp::parse_typed(&since).ok_or_else(|| with_text(Cause::Time.into()))?;
    let zone = current.zone(current.browser_zone()).await;
    let from = zone.time_of(local);
    change(&current, &access, WebhookChange::ReplayFrom(id, from)).await.map_err(with_text)?;
    redirect_to(&page(reference, id, "?replaying=1"))
}

/// The button that delivers an event again.
#[component]
pub fn ReplayButton(
    reference: Reference,
    #[prop(into)] webhookid: String,
    event: String,
    /// The attempt, if the page lists several.
    #[prop(optional, into)]
    about: String,
    form: FormState,
) -> impl IntoView {
    view! {
        <PostForm form inline=true>
            <input type="hidden" name="reference" value=reference.to_string()/>
            <input type="hidden" name="webhookid" value=webhookid/>
            <input type="hidden" name="event" value=event/>
            <SubmitButton label="Replay" form about/>
        </PostForm>
    }
}

/// The form that delivers all events since a time.
#[component]
pub fn ReplaySinceForm(
    reference: Reference,
    #[prop(into)] webhookid: String,
    form: FormState,
) -> impl IntoView {
    let zone = ShownZone::read(|zone| zone.name().to_owned());
    view! {
        <PostForm form>
            <input type="hidden" name="reference" value=reference.to_string()/>
            <input type="hidden" name="webhookid" value=webhookid/>
            <Field
                label="Replay all since"
                name="since"
                kind="datetime-local"
                required=true
                hint=format!(
                    "Time zone: {zone}. We deliver all events since then that this endpoint hasn't \
                     taken, oldest first.",
                )
                form
            />
            <SubmitButton label="Replay all" form/>
        </PostForm>
    }
}
