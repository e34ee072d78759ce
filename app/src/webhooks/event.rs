//! `/applications/{reference}/webhooks/{webhook}/{event}`: an event as it is sent to an endpoint,
//! and the attempts to deliver it.

use domain::records::ApplicationRecord;
use domain::webhook::AttemptRecord;
use domain::{EventType, Timestamp};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::endpoint::result;
use super::replay::{ReplayButton, ReplayEvent};
use crate::applications::ApplicationFrame;
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{DateTime, Fact, FormAlert, FormState, Loaded, Table, in_path, in_zone};
#[cfg(feature = "ssr")]
use {
    super::manage::access,
    crate::applications::owned,
    crate::problem::Cause,
    domain::{EventId, Reference, Refusal, ids::id_unix_ms},
};

/// The page's data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EventView {
    application: ApplicationRecord,
    webhookid: String,
    url: String,
    event: String,
    kind: EventType,
    at: Timestamp,
    /// The body of the requests. `None` if the message or the batch of the event was deleted.
    body: Option<String>,
    /// The newest attempts, newest first.
    attempts: Vec<AttemptRecord>,
}

/// Loads an event and the attempts to deliver it to an endpoint.
#[server(prefix = "/fn", endpoint = "webhook-event", input = GetUrl)]
pub async fn load_webhook_event(
    reference: String,
    webhookid: String,
    event: String,
) -> Result<EventView, Problem> {
    let reference = Reference::parse(&reference)?;
    let (current, access, id) = access(reference, &webhookid).await?;
    let service = current.service();
    let account = current.account().await?.ok_or(Cause::SignedOut)?;
    let application = owned(service, account.id, reference.as_str()).await?;
    let event = EventId::parse(&event).ok_or(Cause::NotFound)?;
    let webhooks = service.webhooks();
    let (record, _) = webhooks.endpoint(&access, id, 1).await?;
    let attempts = webhooks.attempts_of_event(&access, id, event).await?;
    let found = match webhooks.event(&access, event).await {
        Err(error) if error.refusal() == Some(&Refusal::NoSuchEvent) => None,
        found => Some(found?),
    };
    let kind = found.as_ref().map(|event| event.kind);
    let kind = kind.or_else(|| attempts.first().map(|attempt| attempt.kind));
    Ok(EventView {
        application,
        webhookid,
        url: record.url,
        event: event.to_string(),
        kind: kind.ok_or(Cause::NotFound)?,
        at: Timestamp::from_unix_ms(id_unix_ms(event.number)),
        body: found.and_then(|event| current.endpoints().readable_body(event)),
        attempts,
    })
}

#[component]
pub fn WebhookEventPage() -> impl IntoView {
    let (reference, webhook, event) = (in_path("reference"), in_path("webhook"), in_path("event"));
    let form = FormState::new::<ReplayEvent>("replay-alert");
    let data = PageData::after([form], move || LoadWebhookEvent {
        reference: reference.get(),
        webhookid: webhook.get(),
        event: event.get(),
    });
    view! { <Loaded data render=move |data| view! { <Event data form/> }/> }
}

#[component]
fn Event(data: EventView, form: FormState) -> impl IntoView {
    let EventView { application, webhookid, url, event, kind, at, body, attempts } = data;
    let reference = application.reference;
    let id = event.clone();
    let back = format!("/applications/{reference}/webhooks/{webhookid}");
    let body = match body {
        Some(body) => view! {
            <p class="fine">
                "This is the body of the requests. We send it without the line breaks and spaces \
                 that make it readable here."
            </p>
            <pre tabindex="0"><code>{body}</code></pre>
        }
        .into_any(),
        None => view! {
            <p class="empty">"The event was deleted, so its body can't be shown."</p>
        }
        .into_any(),
    };
    view! {
        <ApplicationFrame application at="Webhook event">
            <h2>"Event"</h2>
            <p class="back"><a href=back>"Back to the endpoint"</a></p>
            <dl class="facts">
                <Fact term="Type">{kind.as_str()}</Fact>
                <Fact term="Event ID" class="key">{id}</Fact>
                <Fact term=in_zone("Time (UTC)") class="figures"><DateTime at/></Fact>
                <Fact term="Endpoint" class="key">{url}</Fact>
            </dl>
            <FormAlert form/>
            <p><ReplayButton reference webhookid event form/></p>
            <h2>"Body"</h2>
            {body}
            <h2>"Attempts"</h2>
            {listed(&attempts)}
        </ApplicationFrame>
    }
}

fn listed(attempts: &[AttemptRecord]) -> AnyView {
    Table::wide(attempts)
        .time(in_zone("Time (UTC)"), |attempt| attempt.at)
        .column("Result", result)
        .amount("Took", |attempt| format!("{} ms", attempt.latency_ms))
        .time(in_zone("Next attempt (UTC)"), |attempt| attempt.next_attempt_at)
        .column("Answer (the first KiB)", |attempt| match attempt.answer.as_deref() {
            Some("") => view! { <span class="fine">"The answer had no body."</span> }.into_any(),
            Some(answer) => {
                let answer = answer.to_owned();
                view! { <pre tabindex="0" class="answer"><code>{answer}</code></pre> }.into_any()
            }
            None => view! { <span class="fine">"There was no answer."</span> }.into_any(),
        })
        .in_region_or("Attempts", "This endpoint hasn't got the event yet.")
}
