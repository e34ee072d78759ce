//! A part of the settings page: the number of messages that limits would have refused, with a form
//! to try other values.

use domain::{LimitField, Reference};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use crate::page_data::PageData;
use crate::problem::Problem;
use crate::reports::grouped;
use crate::ui::{Field, FormState, parameter};
#[cfg(feature = "ssr")]
use {
    super::application_view::owned, crate::portal_request::signed_in, domain::SendLimits,
    domain::limits::LimitsChange, service::LimitTrial,
};

/// The limits that can be tried with a value, and the parameter and the value that is tried if
/// the limit is off and the owner has typed none.
const VALUES: [(LimitField, &str, &str); 6] = [
    (LimitField::PerRecipientHour, "try_hour", "5"),
    (LimitField::PerRecipientDay, "try_day", "10"),
    (LimitField::SpendPerDay, "try_spend", ""),
    (LimitField::Prefixes, "try_prefixes", ""),
    (LimitField::QuietHours, "try_quiet", "21:00-08:00"),
    (LimitField::TrafficPumpingMessages, "try_pumping", ""),
];

/// The number of messages that limits would have refused.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrialView {
    /// Each limit with the value that was tried, and the number of messages.
    refused: Vec<(LimitField, String, usize)>,
    /// Whether the spend per day that was tried is the highest of the messages' days.
    is_highest_spend: bool,
    /// The limits whose typed values are invalid.
    invalid: Vec<LimitField>,
    messages: usize,
    /// Whether there were more messages.
    is_cut: bool,
}

/// Tries limits on the messages that one of the account's applications has sent. `typed` has the
/// values in the order of the form, separated by line breaks.
#[server(prefix = "/fn", endpoint = "limit-trial", input = GetUrl)]
pub async fn load_limit_trial(
    reference: Reference,
    #[server(default)] typed: String,
) -> Result<TrialView, Problem> {
    let (current, account) = signed_in().await?;
    let service = current.service();
    owned(service, account.id, &reference.to_string()).await?;
    let applications = service.applications();
    let limits = applications.send_limits(reference).await?;
    let (change, invalid) = tried(&limits, typed.split('\n'));
    let fields: Vec<LimitField> = change.fields().iter().map(|(field, _)| *field).collect();
    let mut limits = change.applied_to(&limits);
    let trial = applications.try_limits(account.id, reference, &limits, &fields).await?;
    let LimitTrial { refused, highest_spend, messages, is_cut } = trial;
    limits.spend_per_day = limits.spend_per_day.or(highest_spend);
    let refused = refused.into_iter().map(|(field, count)| (field, limits.text(field), count));
    let (refused, is_highest_spend) = (refused.collect(), highest_spend.is_some());
    Ok(TrialView { refused, is_highest_spend, invalid, messages, is_cut })
}

/// Returns the limits to try: those that are off, and those with a typed value. Also returns those
/// whose typed value is invalid.
#[cfg(feature = "ssr")]
fn tried<'a>(
    limits: &SendLimits,
    mut typed: impl Iterator<Item = &'a str>,
) -> (LimitsChange, Vec<LimitField>) {
    let (mut change, mut invalid) = (LimitsChange::default(), Vec::new());
    let mut add = |field, text: &str| {
        if change.add(field, text).is_err() {
            invalid.push(field);
        }
    };
    if !limits.local_only {
        add(LimitField::International, "off");
    }
    if !limits.refuse_doubtful {
        add(LimitField::RefuseDoubtful, "true");
    }
    for (field, _, proposed) in VALUES {
        let in_force = limits.text(field);
        let text = typed.next().unwrap_or_default().trim();
        match text {
            "" if field == LimitField::TrafficPumpingMessages => {
                if limits.traffic_pumping != domain::Guard::Block {
                    add(field, &in_force);
                }
            }
            // An empty text stands for the highest spend of a day.
            "" if field == LimitField::SpendPerDay && in_force.is_empty() => add(field, ""),
            "" if proposed.is_empty() || !in_force.is_empty() => {}
            "" => add(field, proposed),
            text => add(field, text),
        }
    }
    (change, invalid)
}

/// Shows how many messages limits would have refused, and a form for other values.
#[component]
pub fn LimitTrialSection(reference: Reference) -> impl IntoView {
    let typed = VALUES.map(|(_, name, ..)| parameter(name));
    let texts = move || typed.map(|typed| typed.get().unwrap_or_default());
    let data = PageData::new(move || LoadLimitTrial { reference, typed: texts().join("\n") });
    let shown = move || {
        Suspend::new(async move { data.get().await.ok().map(|trial| view! { <Trial trial/> }) })
    };
    let form = FormState::plain("trial-alert", None);
    let fields = VALUES.into_iter().zip(texts()).map(|((field, name, _), value)| {
        view! { <Field label=field.label() name value form/> }
    });
    view! {
        <section>
            <h3 id="trial">"What limits would have refused"</h3>
            <Transition>{shown}</Transition>
            <form
                class="form"
                method="get"
                action=format!("/applications/{reference}/settings#trial")
                aria-labelledby="trial"
            >
                <fieldset class="choices">
                    <legend>"Values to try. They change no limit."</legend>
                    {fields.collect_view()}
                </fieldset>
                <button type="submit" class="button button-quiet">"Try these values"</button>
            </form>
        </section>
    }
}

#[component]
fn Trial(trial: TrialView) -> impl IntoView {
    let TrialView { refused, is_highest_spend, invalid, messages, is_cut } = trial;
    let of = match (is_cut, messages) {
        (true, count) => {
            format!("the newest {} live messages of the last 7 days", grouped_of(count))
        }
        (false, count) => format!("the {} live messages of the last 7 days", grouped_of(count)),
    };
    let items = refused.into_iter().map(|(field, value, count)| {
        let would = if field == LimitField::QuietHours {
            "would have waited"
        } else {
            "would have been refused"
        };
        let count = grouped_of(count);
        let highest = if field == LimitField::SpendPerDay && is_highest_spend {
            ", the highest of these days"
        } else {
            ""
        };
        view! { <li>{format!("{}{highest}: {count} {would}.", with_value(field, &value))}</li> }
    });
    let invalid = invalid.into_iter().map(|field| {
        let sentence = format!("{}: this must be {}.", field.label(), field.allowed());
        view! { <p class="alert">{sentence}</p> }
    });
    view! {
        {invalid.collect_view()}
        <p>{format!("Each limit on its own, tried on {of}:")}</p>
        <ul>{items.collect_view()}</ul>
    }
}

fn grouped_of(count: usize) -> String {
    grouped(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Returns a limit with the value that was tried, to begin a sentence.
fn with_value(field: LimitField, value: &str) -> String {
    match field {
        LimitField::International => "Without international numbers".to_owned(),
        LimitField::RefuseDoubtful => "Without doubtful numbers".to_owned(),
        LimitField::PerRecipientHour => format!("At {value} an hour to a recipient"),
        LimitField::PerRecipientDay => format!("At {value} a day to a recipient"),
        LimitField::SpendPerDay => format!("At a spend of {value} a day"),
        LimitField::Prefixes => format!("With only the prefixes {value}"),
        LimitField::QuietHours => format!("With quiet hours {value}"),
        LimitField::TrafficPumping | LimitField::TrafficPumpingMessages => {
            format!("At {value} messages to similar numbers within 10 minutes")
        }
        LimitField::Addresses | LimitField::LeakedKey => field.to_string(),
    }
}
