//! The buttons that cancel a message, and that cancel, pause or resume a batch. Each has a
//! confirmation.

use domain::Refusal;
use leptos::prelude::*;

use crate::problem::Problem;
use crate::ui::{AcceptedNotice, Confirmation, ConfirmationForm, FormState, parameter};
#[cfg(feature = "ssr")]
use {
    crate::portal_request::{redirect_to, signed_in, step_up},
    crate::problem::Cause,
    domain::{BatchId, KeyKind, Transid},
    service::{BatchChange, CancelTarget, KeyAccess, Service, StopAuthor},
};

/// The actions, as the forms and the page's address name them.
pub const CANCEL: &str = "cancel";
pub const PAUSE: &str = "pause";
pub const RESUME: &str = "resume";

/// Cancels, pauses or resumes what the page shows. Only a cancellation can't be undone, so only it
/// needs step-up authentication: a pause has to be quick.
#[server(prefix = "/fn", endpoint = "stop-report")]
pub async fn stop_report(
    id: String,
    action: String,
    #[server(default)] credential: String,
) -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    if action == CANCEL {
        step_up(&current, &account, &credential).await?;
    }
    let service = current.service();
    let (access, target) = find(service, account.id, &id).await?;
    let (messages, author) = (service.messages(), StopAuthor::Owner(account.id));
    let change = |batch, change| messages.change_batch(&access, batch, change, author, None);
    let done = match (action.as_str(), target) {
        (CANCEL, target) => {
            messages.cancel(&access, target, author, None).await?;
            "cancelled"
        }
        (PAUSE, CancelTarget::Batch(batch)) => {
            change(batch, BatchChange::Pause).await?;
            "paused"
        }
        (RESUME, CancelTarget::Batch(batch)) => {
            change(batch, BatchChange::Resume).await?;
            "resumed"
        }
        _ => return Err(Cause::Unreadable.into()),
    };
    redirect_to(&format!("/reports/{id}?{done}=1"))
}

/// Returns the message or batch of an account, and the key that it was sent with.
#[cfg(feature = "ssr")]
pub async fn find(
    service: &Service,
    account_id: i64,
    id: &str,
) -> Result<(KeyAccess, CancelTarget), Problem> {
    let messages = service.messages();
    let (reference, test, target) = if let Some(batch) = BatchId::parse(id) {
        let found = messages.account_batch(account_id, batch).await?;
        let (reference, record) = found.ok_or(Cause::NotFound)?;
        (reference, record.test, CancelTarget::Batch(batch))
    } else {
        let transid = Transid::parse(id).ok_or(Cause::NotFound)?;
        let found = messages.account_message(account_id, transid).await?;
        let (reference, detail) = found.ok_or(Cause::NotFound)?;
        (reference, detail.record.test, CancelTarget::Message(transid))
    };
    let kind = if test { KeyKind::Test } else { KeyKind::Live };
    let access = service.webhooks().access_of(account_id, reference, kind).await?;
    Ok((access, target))
}

/// A button of the page.
#[derive(Clone)]
pub struct StopAction {
    pub action: &'static str,
    pub label: &'static str,
    pub confirmation: Confirmation,
}

/// Renders the buttons, or the confirmation of one of them.
#[component]
pub fn Stop(
    id: String,
    actions: Vec<StopAction>,
    /// The refusal that asks for step-up authentication, if a cancellation needs it now.
    missing: Option<Refusal>,
    form: FormState,
) -> impl IntoView {
    let confirm = parameter("confirm");
    let notices = [
        ("cancelled", "It is cancelled."),
        ("paused", "The batch is paused."),
        ("resumed", "The batch is resumed."),
    ];
    let notices =
        notices.map(|(parameter, sentence)| view! { <AcceptedNotice parameter sentence/> });
    let buttons = move || {
        let address = format!("/reports/{id}");
        let chosen = confirm.get();
        let chosen = actions.iter().find(|it| Some(it.action) == chosen.as_deref());
        if let Some(StopAction { action, label, confirmation }) = chosen.cloned() {
            let (id, danger) = (id.clone(), action == CANCEL);
            let step_up = missing.clone().filter(|_| danger);
            let confirmation = Confirmation { step_up, ..confirmation };
            return view! {
                <ConfirmationForm confirmation label danger back=address form>
                    <input type="hidden" name="id" value=id/>
                    <input type="hidden" name="action" value=action/>
                </ConfirmationForm>
            }
            .into_any();
        }
        let links = actions.iter().map(|StopAction { action, label, .. }| {
            let class = if *action == CANCEL { "button button-danger" } else { "button" };
            view! { <a class=class href=format!("{address}?confirm={action}")>{*label}</a> }
        });
        let links: Vec<_> = links.collect();
        (!links.is_empty()).then(|| view! { <p class="buttons">{links}</p> }).into_any()
    };
    view! {
        {Vec::from(notices)}
        {buttons}
    }
}
