//! Alarms about the use of an application, until its owner marks them as read.

use domain::records::AlarmRecord;
use domain::{AlarmKind, Reference};
use leptos::prelude::*;

#[cfg(feature = "ssr")]
use crate::portal_request::{redirect_to, signed_in};
use crate::problem::Problem;
use crate::ui::{DateTime, FormState, PostForm, SubmitButton};

/// Marks the alarms up to this ID as read.
#[server(prefix = "/fn", endpoint = "read-alarms")]
pub async fn read_alarms(reference: Reference, up_to: i64) -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    let applications = current.service().applications();
    applications.read_alarms(account.id, reference, up_to).await?;
    redirect_to(&format!("/applications/{reference}"))
}

/// The alarms that the owner hasn't marked as read. Shows nothing if there are none.
#[component]
pub fn Alarms(reference: Reference, alarms: Vec<AlarmRecord>, form: FormState) -> impl IntoView {
    let newest = alarms.first()?.id;
    let items = alarms.into_iter().map(|alarm| view! { <Alarm reference alarm/> });
    Some(view! {
        <section aria-labelledby="alarms">
            <h2 id="alarms">"Alarms"</h2>
            <ul>{items.collect_view()}</ul>
            <PostForm form>
                <input type="hidden" name="reference" value=reference.to_string()/>
                <input type="hidden" name="up_to" value=newest.to_string()/>
                <SubmitButton label="Mark as read" form/>
            </PostForm>
        </section>
    })
}

#[component]
fn Alarm(reference: Reference, alarm: AlarmRecord) -> impl IntoView {
    let example = alarm.example.map(|numbers| format!(" For example: {numbers}."));
    let (page, link) = match alarm.kind {
        AlarmKind::LeakedKey => ("keys", "Replace key"),
        AlarmKind::TrafficPumping | AlarmKind::SpendPerDay | AlarmKind::FirstInternational => {
            ("settings", "Limits")
        }
    };
    view! {
        <li>
            <strong>{alarm.kind.heading()}</strong>
            ", "
            <DateTime at=alarm.at/>
            ": "
            {alarm.detail}
            {example}
            " "
            {alarm.kind.advice()}
            " "
            <a href=format!("/applications/{reference}/{page}")>{link}</a>
        </li>
    }
}
