//! `/applications/{reference}/webhooks`: an application's endpoints, and the form for a new one.

use domain::records::ApplicationRecord;
use domain::webhook::{WEBHOOKS_MAX, WebhookRecord};
use domain::{KeyKind, Reference};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::manage::CreateWebhook;
use super::types::{TypesField, in_words};
use crate::applications::ApplicationFrame;
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{
    AcceptedNotice, DateTime, Field, FormState, Loaded, PostForm, StateMark, SubmitButton, Table,
    in_path, in_zone,
};
#[cfg(feature = "ssr")]
use crate::{applications::owned, portal_request::signed_in};

/// An endpoint, and the key whose events it gets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Endpoint {
    pub kind: KeyKind,
    pub record: WebhookRecord,
}

/// The page's data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WebhooksView {
    pub application: ApplicationRecord,
    /// First those of the live key.
    pub endpoints: Vec<Endpoint>,
}

/// Loads the endpoints of one of the account's applications.
#[server(prefix = "/fn", endpoint = "webhooks", input = GetUrl)]
pub async fn load_webhooks(reference: String) -> Result<WebhooksView, Problem> {
    let (current, account) = signed_in().await?;
    let service = current.service();
    let application = owned(service, account.id, &reference).await?;
    let found = service.webhooks().of_application(application.reference).await?;
    let endpoints = found.into_iter().map(|(kind, record)| Endpoint { kind, record }).collect();
    Ok(WebhooksView { application, endpoints })
}

#[component]
pub fn WebhooksPage() -> impl IntoView {
    let reference = in_path("reference");
    let form = FormState::new::<CreateWebhook>("webhook-alert");
    let data = PageData::after([form], move || LoadWebhooks { reference: reference.get() });
    view! { <Loaded data render=move |data| view! { <Webhooks data form/> }/> }
}

#[component]
fn Webhooks(data: WebhooksView, form: FormState) -> impl IntoView {
    let WebhooksView { application, endpoints } = data;
    let reference = application.reference;
    let base = format!("/applications/{reference}/webhooks");
    view! {
        <ApplicationFrame application at="Webhooks">
            <h2>"Webhooks"</h2>
            <AcceptedNotice parameter="removed" sentence="The endpoint is removed."/>
            <p>
                "An event is something that your system may want to know, such as the delivery of \
                 a message. We send each event to your endpoints as an HTTP request. "
                <a href="/docs#webhooks" rel="external">"How webhooks work"</a>
            </p>
            <p class="fine">
                "If your system can't receive requests, it can "
                <a href="/docs#events" rel="external">"look up events"</a> " instead."
            </p>
            {listed(&endpoints, &base)}
            <h2>"New endpoint"</h2>
            <NewForm reference form/>
        </ApplicationFrame>
    }
}

/// Renders the endpoints. `base` is the address of their list.
fn listed(endpoints: &[Endpoint], base: &str) -> AnyView {
    Table::wide(endpoints)
        .styled("key url", "URL", |endpoint| {
            let href = format!("{base}/{}", endpoint.record.webhookid);
            view! { <a href=href>{endpoint.record.url.clone()}</a> }
        })
        .column("Key", |endpoint| key_name(endpoint.kind))
        .column("Events", |endpoint| match &endpoint.record.events {
            Some(types) if types.len() > 3 => format!("{} types", types.len()),
            types => in_words(types.as_deref()),
        })
        .column("Status", |endpoint| status(&endpoint.record))
        .time(in_zone("Created (UTC)"), |endpoint| endpoint.record.created_at)
        .in_region_or(
            "Endpoints",
            "This application has no endpoints yet. Add the URL of your system below.",
        )
}

/// Returns the name of a key, for the end of a sentence or for a table.
pub const fn key_name(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::Live => "Live",
        KeyKind::Test => "Test",
    }
}

/// Shows whether an endpoint gets events, and if not, why.
pub fn status(record: &WebhookRecord) -> AnyView {
    let why = match (record.disabled, record.failing_since) {
        (Some(reason), _) => reason.sentence().into_any(),
        (None, Some(since)) => view! { "Since " <DateTime at=since with_zone=true/> }.into_any(),
        (None, None) => ().into_any(),
    };
    view! { <StateMark state=record/> " " <span class="fine">{why}</span> }.into_any()
}

/// The form for a new endpoint.
#[component]
fn NewForm(reference: Reference, form: FormState) -> impl IntoView {
    let chosen = form.typed("kind").and_then(|kind| KeyKind::parse(&kind)).unwrap_or(KeyKind::Live);
    let kinds = [
        (KeyKind::Live, "Live: events of real messages"),
        (KeyKind::Test, "Test: events of messages that were sent with the test key"),
    ];
    let kinds = kinds.map(|(kind, label)| {
        let is_chosen = kind == chosen;
        view! {
            <label class="choice">
                <input type="radio" name="kind" value=kind.as_str() checked=is_chosen/>
                {label}
            </label>
        }
    });
    view! {
        <PostForm form>
            <p>
                {format!(
                    "Each key can have {WEBHOOKS_MAX} endpoints. After you add one, we show the \
                     secret with which your system verifies our requests.",
                )}
            </p>
            <input type="hidden" name="reference" value=reference.to_string()/>
            <Field
                label="URL"
                name="url"
                kind="url"
                required=true
                hint="For example https://example.com/sms-events"
                form
            />
            <fieldset class="choices">
                <legend>"Key"</legend>
                {Vec::from(kinds)}
            </fieldset>
            <TypesField types=None form/>
            <SubmitButton label="Add endpoint" form primary=true/>
        </PostForm>
    }
}
