//! `/applications/{reference}/webhooks/{webhook}`: an endpoint, its attempts, and its forms.

use domain::records::{ApplicationRecord, Paged};
use domain::webhook::{AttemptCounts, AttemptRecord, WebhookRecord};
use domain::{KeyKind, Reference, Timestamp};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::chart::attempts_chart;
use super::check::about;
use super::list::{key_name, status};
use super::manage::{
    CHECK, ChangeWebhook, ENABLE, MoveWebhook, REMOVE, ROTATE, SetWebhookEvents, TEST, page,
};
use super::news::{TakeWebhookNews, shown_once};
use super::replay::{ReplayButton, ReplayEvent, ReplaySince, ReplaySinceForm};
use super::types::{TypesField, in_words};
use crate::applications::ApplicationFrame;
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{
    AcceptedNotice, BUTTONS, DateTime, Fact, Field, FormAlert, FormState, Loaded, PostForm,
    StateMark, SubmitButton, Table, address, in_path, in_zone, pager, parameter, tabs,
};
#[cfg(feature = "ssr")]
use {
    crate::applications::owned,
    crate::portal_request::signed_in,
    crate::problem::Cause,
    crate::ui::last,
    domain::{Refusal, WebhookId},
    service::{COUNTED_DAYS, COUNTED_MAX},
};

/// The page's data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndpointView {
    application: ApplicationRecord,
    kind: KeyKind,
    record: WebhookRecord,
    /// A page of the attempts, newest first, without the endpoint's answers.
    attempts: Paged<AttemptRecord>,
    /// The way to that page.
    way: String,
    only_failed: bool,
    counts: Vec<AttemptCounts>,
    /// How far back attempts are counted, and the most that are counted.
    counted: (i64, i64),
    now: Timestamp,
}

/// Loads an endpoint of one of the account's applications.
#[server(prefix = "/fn", endpoint = "webhook", input = GetUrl)]
pub async fn load_webhook(
    reference: String,
    webhookid: String,
    #[server(default)] way: String,
    #[server(default)] only_failed: bool,
) -> Result<EndpointView, Problem> {
    let (current, account) = signed_in().await?;
    let service = current.service();
    let application = owned(service, account.id, &reference).await?;
    let id = WebhookId::parse(&webhookid).ok_or(Cause::NotFound)?;
    let webhooks = service.webhooks();
    let access = match webhooks.access_to(account.id, application.reference, id).await {
        Err(error) if error.refusal() == Some(&Refusal::NoSuchWebhook) => {
            return Err(Cause::NotFound.into());
        }
        access => access?,
    };
    let (record, _) = webhooks.endpoint(&access, id, 1).await?;
    let mut attempts = webhooks.attempts(&access, id, only_failed, last(&way)).await?;
    for attempt in &mut attempts.items {
        attempt.answer = None;
    }
    Ok(EndpointView {
        counts: webhooks.attempt_counts(&access, id).await?,
        counted: (COUNTED_DAYS, COUNTED_MAX),
        now: service.clock().now(),
        kind: access.kind,
        application,
        record,
        attempts,
        way,
        only_failed,
    })
}

#[derive(Clone, Copy)]
struct Forms {
    act: FormState,
    url: FormState,
    events: FormState,
    replay: FormState,
    since: FormState,
}

#[component]
pub fn EndpointPage() -> impl IntoView {
    let (reference, webhook) = (in_path("reference"), in_path("webhook"));
    let (way, only) = (parameter("cursor"), parameter("only"));
    let forms = Forms {
        act: FormState::new::<ChangeWebhook>("webhook-alert"),
        url: FormState::new::<MoveWebhook>("webhook-url-alert"),
        events: FormState::new::<SetWebhookEvents>("webhook-events-alert"),
        replay: FormState::new::<ReplayEvent>("replay-alert"),
        since: FormState::new::<ReplaySince>("replay-since-alert"),
    };
    let Forms { act, url, events, replay, since } = forms;
    let data = PageData::after([act, url, events, replay, since], move || LoadWebhook {
        reference: reference.get(),
        webhookid: webhook.get(),
        way: way.get().unwrap_or_default(),
        only_failed: only.get().as_deref() == Some(FAILED),
    });
    let news = PageData::after([act], move || TakeWebhookNews { webhookid: webhook.get() });
    let render = move |data: EndpointView| {
        view! {
            <ApplicationFrame application=data.application.clone() at="Webhook">
                {notices()}
                {shown_once(news)}
                <Content data forms/>
            </ApplicationFrame>
        }
    };
    view! { <Loaded data render/> }
}

/// The value of the parameter that selects failed attempts.
const FAILED: &str = "failed";

fn notices() -> impl IntoView {
    let notices = [
        ("tested", "We sent a test event. The newest attempt below shows the result."),
        (
            "enabled",
            "The endpoint is enabled. It gets the events of the last three days that it missed.",
        ),
        ("moved", "The URL is changed."),
        ("chosen", "The types of events are saved."),
        ("replayed", "We deliver the event again now. Reload the page to see the attempt."),
        ("replaying", "We deliver the events again now. Reload the page to see the attempts."),
    ];
    let notices =
        notices.map(|(parameter, sentence)| view! { <AcceptedNotice parameter sentence/> });
    Vec::from(notices)
}

#[component]
fn Content(data: EndpointView, forms: Forms) -> impl IntoView {
    let EndpointView { application, kind, record, counts, counted, now, .. } = data.clone();
    let reference = application.reference;
    let id = record.webhookid.to_string();
    let list = format!("/applications/{reference}/webhooks");
    view! {
        <h2>"Endpoint"</h2>
        <p class="back"><a href=list>"All endpoints"</a></p>
        {facts(kind, &record)}
        <Actions reference record=record.clone() form=forms.act/>
        <h2>{format!("Attempts of the last {} days", counted.0)}</h2>
        {attempts_chart(&counts, now, counted)}
        <h2 id="attempts">"Attempts"</h2>
        <FormAlert form=forms.replay/>
        {attempts(&data, forms.replay)}
        <h2>"Replay events"</h2>
        <ReplaySinceForm reference webhookid=id form=forms.since/>
        <Changes reference record forms/>
    }
}

fn facts(kind: KeyKind, record: &WebhookRecord) -> impl IntoView + use<> {
    let WebhookRecord { webhookid, url, created_at, .. } = record.clone();
    let (id, status) = (webhookid.to_string(), status(record));
    let events = in_words(record.events.as_deref());
    view! {
        <dl class="facts">
            <Fact term="URL" class="key">{url}</Fact>
            <Fact term="Status">{status}</Fact>
            <Fact term="Key">{key_name(kind)}</Fact>
            <Fact term="Events">{events}</Fact>
            <Fact term=in_zone("Created (UTC)") class="figures"><DateTime at=created_at/></Fact>
            <Fact term="Webhook ID" class="key">{id}</Fact>
        </dl>
    }
}

/// The buttons of an endpoint, or the confirmation of one of them.
#[component]
fn Actions(reference: Reference, record: WebhookRecord, form: FormState) -> impl IntoView {
    let confirm = parameter("confirm");
    let is_disabled = record.disabled.is_some();
    move || {
        let record = record.clone();
        let (label, action, danger, warning) = match confirm.get().as_deref() {
            Some(ROTATE) => (
                "Rotate secret",
                ROTATE,
                false,
                "We make a new secret and show it once. For 24 hours we sign each request with \
                 both the old and the new secret, so that your system can change without losing \
                 an event.",
            ),
            Some(REMOVE) => (
                "Remove endpoint",
                REMOVE,
                true,
                "This endpoint gets no more events, and its attempts are deleted. You can't undo \
                 this.",
            ),
            _ => return view! { <Buttons reference record is_disabled form/> }.into_any(),
        };
        let back = page(reference, record.webhookid, "");
        view! {
            <PostForm form>
                <p>{warning}</p>
                <input type="hidden" name="reference" value=reference.to_string()/>
                <input type="hidden" name="webhookid" value=record.webhookid.to_string()/>
                <div class="buttons">
                    <SubmitButton label form primary={!danger} danger field=("action", action)/>
                    <a class="button button-quiet" href=back>"Cancel"</a>
                </div>
            </PostForm>
        }
        .into_any()
    }
}

#[component]
fn Buttons(
    reference: Reference,
    record: WebhookRecord,
    is_disabled: bool,
    form: FormState,
) -> impl IntoView {
    let confirm = |action: &str| page(reference, record.webhookid, &format!("?confirm={action}"));
    let (rotate, remove) = (confirm(ROTATE), confirm(REMOVE));
    view! {
        <PostForm form>
            <input type="hidden" name="reference" value=reference.to_string()/>
            <input type="hidden" name="webhookid" value=record.webhookid.to_string()/>
            <div class="buttons">
                {is_disabled
                    .then(|| {
                        view! { <SubmitButton label="Enable" form primary=true field=("action", ENABLE)/> }
                    })}
                <SubmitButton label="Check endpoint" form primary={!is_disabled} field=("action", CHECK)/>
                <SubmitButton label="Send test event" form field=("action", TEST)/>
                <a class="button" href=rotate>"Rotate secret"</a>
                <a class="button button-danger" href=remove>"Remove endpoint"</a>
            </div>
        </PostForm>
        {about()}
    }
}

/// Renders the list of attempts, with links to its parts and pages.
fn attempts(data: &EndpointView, form: FormState) -> impl IntoView + use<> {
    let (reference, id) = (data.application.reference, data.record.webhookid);
    let base = page(reference, id, "");
    let failed = format!("{base}?only={FAILED}#attempts");
    let links = [
        (format!("{base}#attempts"), "All attempts", !data.only_failed),
        (failed, "Failed attempts", data.only_failed),
    ];
    let only = if data.only_failed { FAILED } else { "" };
    let pages = pager("attempts", &data.way, data.attempts.next.as_deref(), |way| {
        format!("{}#attempts", address(&base, [("only", only), ("cursor", way)]))
    });
    let table = Table::wide(&data.attempts.items)
        .time(in_zone("Time (UTC)"), |attempt| attempt.at)
        .column("Event", |attempt| {
            let href = format!("{base}/{}", attempt.event);
            view! {
                {attempt.kind.as_str()}
                <div class="fine"><a class="key" href=href>{attempt.event.clone()}</a></div>
            }
        })
        .column("Result", result)
        .amount("Took", |attempt| format!("{} ms", attempt.latency_ms))
        .time(in_zone("Next attempt (UTC)"), |attempt| attempt.next_attempt_at)
        .styled(BUTTONS, "Action", |attempt| {
            let (webhookid, event) = (id.to_string(), attempt.event.clone());
            let about = format!("{event}, attempt {}", attempt.id);
            view! { <ReplayButton reference webhookid event about form/> }
        })
        .in_region_or("Attempts", "There are no attempts.");
    view! {
        {tabs("Attempts", links)}
        {table}
        {pages}
    }
}

pub fn result(attempt: &AttemptRecord) -> AnyView {
    let status = attempt.status.map(|status| format!(" {status}"));
    view! {
        <div><StateMark state=attempt/> {status}</div>
        {attempt.error.clone().map(|error| view! { <div class="fine">{error}</div> })}
    }
    .into_any()
}

/// The forms that change the URL and the types of events.
#[component]
fn Changes(reference: Reference, record: WebhookRecord, forms: Forms) -> impl IntoView {
    let WebhookRecord { webhookid, url, events, .. } = record;
    let (id, same_id) = (webhookid.to_string(), webhookid.to_string());
    view! {
        <h2>"Change this endpoint"</h2>
        <PostForm form=forms.url>
            <input type="hidden" name="reference" value=reference.to_string()/>
            <input type="hidden" name="webhookid" value=same_id/>
            <Field label="URL" name="url" kind="url" required=true value=url form=forms.url/>
            <SubmitButton label="Change URL" form=forms.url/>
        </PostForm>
        <PostForm form=forms.events>
            <input type="hidden" name="reference" value=reference.to_string()/>
            <input type="hidden" name="webhookid" value=id/>
            <TypesField types=events form=forms.events/>
            <SubmitButton label="Save events" form=forms.events/>
        </PostForm>
    }
}
