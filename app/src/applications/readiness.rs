//! "Can this application send now?": each requirement, ticked or with what to do.

use domain::readiness::{Blocker, Need, SpendCap};
use domain::records::{ApplicationRecord, KeyRecord};
use domain::{Category, KeyKind};
use leptos::prelude::*;

use super::NOT_FOR_SMS;
use super::application_view::ApplicationView;
use crate::ui::{DateTime, FormAlert, FormState, PostForm, SubmitButton, answered_within};

/// The answer, and the list of requirements.
#[component]
pub fn Readiness(data: ApplicationView, activate: FormState) -> impl IntoView {
    let needs: &[Need] =
        if data.blockers.contains(&Blocker::Category) { &[Need::Activation] } else { &Need::ALL };
    let items: Vec<_> = (needs.iter()).map(|need| item(&data, *need, activate)).collect();
    view! {
        <section class="panel" aria-labelledby="readiness">
            <h2 id="readiness">"Can this application send now?"</h2>
            <p><strong>{can_send(&data.blockers)}</strong></p>
            <ul class="checks">{items}</ul>
        </section>
    }
}

/// Returns the answer as a sentence.
pub fn can_send(blockers: &[Blocker]) -> &'static str {
    match blockers {
        [] => "Yes.",
        [Blocker::Category, ..] => NOT_FOR_SMS,
        [Blocker::NoCarrier] => {
            "Yes, but messages will wait: no carrier accepts messages right now."
        }
        [Blocker::AccountDisabled] => "No.",
        [Blocker::SpendCap(_)] => "No, not with its API key until the next day begins.",
        _ => "No, not with its API key.",
    }
}

/// Renders a requirement: met, or what to do.
fn item(data: &ApplicationView, need: Need, activate: FormState) -> impl IntoView + use<> {
    let application = &data.application;
    let blocker = data.blockers.iter().find(|found| found.need() == Some(need));
    let (class, mark) = match blocker {
        None => ("check check-met", "Done: "),
        Some(blocker) if blocker.is_for_customer() => ("check check-open", "To do: "),
        Some(_) => ("check check-waits", "Waits: "),
    };
    let words = match blocker {
        None => met(data, need).into_any(),
        Some(Blocker::ActivationNotRequested) => ask_for_activation(application, activate),
        Some(blocker) => unmet(data, *blocker),
    };
    view! {
        <li class=class>
            <span class="visually-hidden">{mark}</span>
            {words}
        </li>
    }
}

fn met(data: &ApplicationView, need: Need) -> String {
    match need {
        Need::Activation => "The application is Active.".to_owned(),
        Need::SenderName => match &data.application.sender_name {
            Some(name) => format!("Messages are sent as {name}."),
            None => format!(
                "Messages are sent as {}, since the application has no sender name.",
                data.default_sender
            ),
        },
        Need::Balance => {
            let (balance, currency) = (data.application.balance, &data.currency);
            let low = data.application.low_balance.filter(|low| balance < *low);
            let low = low.map(|low| format!(", below the {} {currency} that you set", low.shown()));
            format!("The balance is {} {currency}{}.", balance.shown(), low.unwrap_or_default())
        }
        Need::Key => match live_key(&data.keys) {
            Some(key) if key.used_at.is_some() => {
                format!("The API key ending in {} works. It has been used.", key.last_four)
            }
            Some(key) => {
                format!("The API key ending in {} works. It hasn't been used yet.", key.last_four)
            }
            None => "The application has an API key.".to_owned(),
        },
        Need::Carrier => "A carrier accepts messages.".to_owned(),
    }
}

fn live_key(keys: &[KeyRecord]) -> Option<&KeyRecord> {
    keys.iter().find(|key| key.kind == KeyKind::Live)
}

fn ask_for_activation(application: &ApplicationRecord, activate: FormState) -> AnyView {
    let reference = application.reference.to_string();
    view! {
        <p>
            {match application.category {
                Category::Sms => {
                    "The application is Pending: its API key sends nothing until it is activated. \
                     The test key works already."
                }
                Category::Electricity => "The application is Pending.",
            }}
        </p>
        <FormAlert form=activate/>
        <PostForm form=activate inline=true>
            <input type="hidden" name="reference" value=reference/>
            <SubmitButton label="Request activation" form=activate primary=true/>
        </PostForm>
    }
    .into_any()
}

/// Returns a sentence about the test key, which works before activation.
fn has_test_key(application: &ApplicationRecord) -> Option<&'static str> {
    let sends = application.category == Category::Sms;
    sends.then_some(" The test key works already.")
}

fn unmet(data: &ApplicationView, blocker: Blocker) -> AnyView {
    let application = &data.application;
    let page = |name: &str| format!("/applications/{}{name}", application.reference);
    match blocker {
        Blocker::Category | Blocker::ActivationNotRequested => ().into_any(),
        Blocker::ActivationWaits => {
            let asked = application.activation_requested_at;
            view! {
                "You requested activation "
                {asked.map(|at| view! { <DateTime at with_zone=true/> })}
                ". "
                {answered_within(data.activation_usual)}
                {has_test_key(application)}
            }
            .into_any()
        }
        Blocker::Suspended => {
            let reason = application.suspend_reason.clone();
            let reason = reason.unwrap_or_else(|| "none given".to_owned());
            view! {
                "The application is suspended: its keys send nothing until the suspension ends. \
                 Reason: "
                {reason}
            }
            .into_any()
        }
        Blocker::SenderNameWaits => view! {
            "We check the sender name "
            {asked_for(application)}
            ". Until it is accepted, nothing can be sent. "
            {answered_within(data.sender_usual)}
        }
        .into_any(),
        Blocker::SenderNameRejected => {
            let request = application.requested_sender.as_ref();
            let reason = request.and_then(|request| request.reason.clone());
            view! {
                "The sender name "
                {asked_for(application)}
                " was not accepted: "
                {reason}
                " "
                <a href=page("/sender")>"Ask for another one"</a>
            }
            .into_any()
        }
        Blocker::Balance => balance(data),
        Blocker::SpendCap(SpendCap { max, until }) => view! {
            {format!(
                "Today's limit of {} {} is used up. It begins anew ",
                max.shown(),
                data.currency
            )}
            <DateTime at=until with_zone=true/>
            ". "
            <a href=page("/settings#limits")>"Change the limit"</a>
        }
        .into_any(),
        Blocker::AccountDisabled => {
            "The account is disabled: its keys send nothing. Contact support.".into_any()
        }
        Blocker::NoCarrier => "No carrier accepts messages right now. You can still send. \
                                 Messages wait for up to 48 hours, and you aren't charged for a \
                                 message that no carrier accepts."
            .into_any(),
    }
}

fn asked_for(application: &ApplicationRecord) -> Option<String> {
    let request = application.requested_sender.as_ref();
    request.map(|request| request.name.clone())
}

fn balance(data: &ApplicationView) -> AnyView {
    let currency = &data.currency;
    let sentence = format!(
        "The balance is {} {currency}, and a page to a local number costs {} {currency}. ",
        data.application.balance.shown(),
        data.local_price.shown()
    );
    let reference = data.application.reference;
    let href = format!("/applications/{reference}#deposits");
    view! {
        {sentence}
        <a href=href>"Make a deposit"</a>
    }
    .into_any()
}
