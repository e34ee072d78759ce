//! "Can this application send now?", with what staff can do about it.

use domain::Money;
use domain::readiness::{Blocker, SpendCap};
use domain::records::ApplicationRecord;
use leptos::prelude::*;

use crate::applications::{NOT_FOR_SMS, can_send};
use crate::ui::DateTime;

/// The answer, and each reason why the application can't send.
#[component]
pub fn SendsNow(
    application: ApplicationRecord,
    blockers: Vec<Blocker>,
    /// Why the account is disabled, for staff.
    disabled_reason: Option<String>,
    /// The price of a page to a local number.
    local_price: Money,
    currency: String,
) -> impl IntoView {
    let reason = |blocker: &Blocker| {
        let words = match blocker {
            Blocker::AccountDisabled => disabled(&application, disabled_reason.as_deref()),
            blocker => reason(&application, *blocker, local_price, &currency),
        };
        view! { <li class="check check-open">{words}</li> }
    };
    let reasons: Vec<_> = blockers.iter().map(reason).collect();
    view! {
        <section class="panel" aria-labelledby="readiness">
            <h2 id="readiness">"Can this application send now?"</h2>
            <p><strong>{can_send(&blockers)}</strong></p>
            <ul class="checks">{reasons}</ul>
        </section>
    }
}

/// Says that the account is disabled or closed. Its owner mustn't read the reason, so it isn't part
/// of the application.
fn disabled(application: &ApplicationRecord, reason: Option<&str>) -> AnyView {
    if application.account_closed {
        return "The owner closed the account: its keys are refused.".into_any();
    }
    let reason = reason.unwrap_or("none given");
    format!("The account is disabled: its keys are refused with the code 503. Reason: {reason}")
        .into_any()
}

fn reason(
    application: &ApplicationRecord,
    blocker: Blocker,
    local_price: Money,
    currency: &str,
) -> AnyView {
    let request = application.requested_sender.as_ref();
    let name = request.map(|request| request.name.clone()).unwrap_or_default();
    match blocker {
        Blocker::AccountDisabled => ().into_any(),
        Blocker::Category => NOT_FOR_SMS.into_any(),
        Blocker::ActivationNotRequested => "The customer hasn't requested activation.".into_any(),
        Blocker::ActivationWaits => view! {
            "The customer requested activation "
            {application.activation_requested_at.map(|at| view! { <DateTime at with_zone=true/> })}
            "."
        }
        .into_any(),
        Blocker::Suspended => {
            let reason = application.suspend_reason.clone();
            let reason = reason.unwrap_or_else(|| "none given".to_owned());
            format!("It is suspended. Reason: {reason}").into_any()
        }
        Blocker::SenderNameWaits => view! {
            {format!("The sender name {name} waits for a decision. ")}
            <a href="/support/senders">"Decide about it"</a>
        }
        .into_any(),
        Blocker::SenderNameRejected => {
            let reason = request.and_then(|request| request.reason.clone()).unwrap_or_default();
            format!("The sender name {name} was rejected: {reason}").into_any()
        }
        Blocker::Balance => format!(
            "The balance is {} {currency}, and a page to a local number costs {} {currency}.",
            application.balance.shown(),
            local_price.shown()
        )
        .into_any(),
        Blocker::SpendCap(SpendCap { max, until }) => view! {
            {format!(
                "The owner's limit of {} {currency} for the day is used up. It begins anew ",
                max.shown(),
            )}
            <DateTime at=until with_zone=true/>
            "."
        }
        .into_any(),
        Blocker::NoCarrier => view! {
            "No carrier accepts messages right now. "
            <a href="/support/carriers">"See the carriers"</a>
        }
        .into_any(),
    }
}
