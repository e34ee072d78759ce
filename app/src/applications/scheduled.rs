//! The scheduled messages of an application, and cancelling all of them.

use domain::records::ScheduledCount;
use domain::{KeyKind, MessageStatus, Reference};
use leptos::prelude::*;

use crate::problem::Problem;
use crate::reports::{REPORTS_PATH, ReportFilter, counted};
use crate::ui::{
    AcceptedNotice, Confirmation, ConfirmationForm, DateTime, FormState, in_zone, parameter,
};
#[cfg(feature = "ssr")]
use {
    crate::portal_request::{redirect_to, signed_in, step_up},
    service::StopAuthor,
};

/// The confirmation's name in the page's address.
const CANCEL: &str = "cancel-scheduled";

/// Cancels everything that an application has scheduled with its live key.
#[server(prefix = "/fn", endpoint = "cancel-scheduled")]
pub async fn cancel_scheduled(
    reference: Reference,
    #[server(default)] credential: String,
) -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    step_up(&current, &account, &credential).await?;
    let service = current.service();
    let access = service.webhooks().access_of(account.id, reference, KeyKind::Live).await?;
    service.messages().cancel_scheduled(&access, StopAuthor::Owner(account.id)).await?;
    redirect_to(&format!("/applications/{reference}?cancelled=1"))
}

#[component]
pub fn Scheduled(
    reference: Reference,
    scheduled: ScheduledCount,
    currency: String,
    form: FormState,
) -> impl IntoView {
    let sentence = "Everything that was scheduled is cancelled.";
    view! {
        <AcceptedNotice parameter="cancelled" sentence/>
        {(scheduled.messages > 0).then(|| view! { <Waiting reference scheduled currency form/> })}
    }
}

#[component]
fn Waiting(
    reference: Reference,
    scheduled: ScheduledCount,
    currency: String,
    form: FormState,
) -> impl IntoView {
    let confirm = parameter("confirm");
    let count = counted(scheduled.messages, "message");
    let filter = ReportFilter {
        application: reference.to_string(),
        status: MessageStatus::Scheduled.as_str().to_owned(),
        key: KeyKind::Live.as_str().to_owned(),
        ..ReportFilter::default()
    };
    let list = filter.address(REPORTS_PATH, &[]);
    let next = scheduled.next.map(|at| view! { ", next at " <DateTime at/> });
    let zone = in_zone(" (UTC)");
    let buttons = move || {
        if confirm.get().as_deref() != Some(CANCEL) {
            let address = format!("/applications/{reference}?confirm={CANCEL}");
            return view! {
                <p class="buttons">
                    <a class="button button-danger" href=address>"Cancel everything scheduled"</a>
                </p>
            }
            .into_any();
        }
        let effect = format!("{count} aren't sent, and their price is released.");
        let confirmation = Confirmation::of(effect, "You can't undo this.");
        let (label, back) = ("Cancel everything scheduled", format!("/applications/{reference}"));
        view! {
            <ConfirmationForm confirmation label danger=true back form>
                <input type="hidden" name="reference" value=reference.to_string()/>
            </ConfirmationForm>
        }
        .into_any()
    };
    let shown = counted(scheduled.messages, "message");
    let today = format!(", {} of them today", scheduled.today);
    let of_batches = scheduled.of_batches;
    let of_batches = (of_batches.rows > 0).then(|| {
        let rows = counted(of_batches.rows, "row");
        let reserved = of_batches.reserved.shown();
        view! {
            <p class="fine">
                {format!(
                    "{rows} of scheduled batches are among them. {reserved} {currency} is reserved \
                     for these. They are counted as messages on the day on which they are sent.",
                )}
            </p>
        }
    });
    view! {
        <h2 id="scheduled">"Scheduled"</h2>
        <p><a href=list>{shown}</a> {today} {next} {zone} "."</p>
        {of_batches}
        {buttons}
    }
}
