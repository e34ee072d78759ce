//! The limits that the owner of an application sets.

use domain::{Guard, LimitField, Reference, SendLimits};
use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::ui::{Choice, Field, FormState, PostForm, StepUpField, SubmitButton};
#[cfg(feature = "ssr")]
use {
    crate::portal_request::{redirect_to, signed_in, step_up},
    crate::problem::Cause,
    domain::limits::LimitsChange,
    service::LimitsAuthor,
};

/// The parameter of the page with addresses to fill in. Nothing is saved until the owner saves the
/// form.
pub const PROPOSED_ADDRESSES: &str = "addresses";
/// The choice whether a live key may change the limits.
const BY_API: &str = "changed_by_api";
const ALLOWED: &str = "allowed";
const LOCKED: &str = "locked";

/// The limits, as the form shows them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LimitsView {
    pub limits: SendLimits,
    pub currency: String,
    /// How many messages and requests the limits refused within the last seven days: the
    /// reason, its sentence and the count.
    pub refusals: Vec<(String, String, i64)>,
}

/// The fields of the form, which are all sent at once.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LimitsForm {
    #[serde(default)]
    international: String,
    #[serde(default)]
    prefixes: String,
    #[serde(default)]
    per_recipient_hour: String,
    #[serde(default)]
    per_recipient_day: String,
    #[serde(default)]
    spend_per_day: String,
    #[serde(default)]
    addresses: String,
    #[serde(default)]
    refuse_doubtful: String,
    #[serde(default)]
    quiet_hours: String,
    #[serde(default)]
    traffic_pumping: String,
    #[serde(default)]
    traffic_pumping_messages: String,
    #[serde(default)]
    leaked_key: String,
    #[serde(default)]
    changed_by_api: String,
}

#[cfg(feature = "ssr")]
impl LimitsForm {
    fn texts(&self) -> [(LimitField, &str); LimitField::ALL.len()] {
        [
            (LimitField::International, &self.international),
            (LimitField::Prefixes, &self.prefixes),
            (LimitField::PerRecipientHour, &self.per_recipient_hour),
            (LimitField::PerRecipientDay, &self.per_recipient_day),
            (LimitField::SpendPerDay, &self.spend_per_day),
            (LimitField::Addresses, &self.addresses),
            (LimitField::RefuseDoubtful, &self.refuse_doubtful),
            (LimitField::QuietHours, &self.quiet_hours),
            (LimitField::TrafficPumping, &self.traffic_pumping),
            (LimitField::TrafficPumpingMessages, &self.traffic_pumping_messages),
            (LimitField::LeakedKey, &self.leaked_key),
        ]
    }

    /// Adds the texts to a problem, so that the form keeps them.
    fn keep(&self, problem: Problem) -> Problem {
        let problem = problem.typed(BY_API, &self.changed_by_api);
        let texts = self.texts().into_iter();
        texts.fold(problem, |problem, (field, text)| problem.typed(field.as_str(), text))
    }

    fn change(&self) -> Result<LimitsChange, Problem> {
        let mut change = LimitsChange::default();
        let add = |(field, text)| change.add(field, text).err();
        let wrong: Vec<_> = self.texts().into_iter().filter_map(add).collect();
        if !wrong.is_empty() {
            return Err(Cause::Limits(wrong.into_iter().map(|wrong| wrong.field).collect()).into());
        }
        change.changed_by_api = Some(self.changed_by_api == ALLOWED);
        Ok(change)
    }
}

/// Saves all limits of an application.
#[server(prefix = "/fn", endpoint = "set-limits")]
pub async fn set_limits(
    reference: Reference,
    #[server(flatten)] limits: LimitsForm,
    #[server(default)] credential: String,
) -> Result<(), Problem> {
    let keep = |problem: Problem| limits.keep(problem);
    let (current, account) = signed_in().await.map_err(keep)?;
    let change = limits.change().map_err(keep)?;
    let service = current.service();
    let found = service.applications().application(account.id, reference).await?;
    found.ok_or(Cause::NotFound).map_err(|cause| keep(cause.into()))?;
    // A thief of the session must not lift the limits.
    step_up(&current, &account, &credential).await.map_err(keep)?;
    let author = LimitsAuthor::Owner(account.id);
    service.applications().change_limits(reference, author, change).await?;
    redirect_to(&format!("/applications/{reference}/settings?limits=1"))
}

#[component]
pub fn LimitsSection(reference: Reference, data: LimitsView, form: FormState) -> impl IntoView {
    let LimitsView { mut limits, currency, refusals } = data;
    let proposed = use_query_map().with_untracked(|query| query.get(PROPOSED_ADDRESSES));
    let is_proposed = proposed.is_some_and(|text| limits.set(LimitField::Addresses, &text).is_ok());
    let by_api = if limits.changed_by_api { ALLOWED } else { LOCKED };
    let by_api = form.typed(BY_API).unwrap_or_else(|| by_api.to_owned());
    view! {
        <section>
            <h2 id="limits">"Limits"</h2>
            <p>
                "Limits protect your money and your recipients if a program fails or a key is \
                 stolen. A message that a limit refuses costs nothing. The numbers are counted \
                 separately for the API key and the test key."
            </p>
            {refused(&refusals)}
            {is_proposed
                .then(|| view! {
                    <p role="status">
                        "The addresses that used the key are filled in below, but not saved yet. \
                         Check the list: requests from all other addresses will be refused."
                    </p>
                })}
            <PostForm form>
                <input type="hidden" name="reference" value=reference.to_string()/>
                {of_messages(&limits, &currency, form)}
                {choice(
                    LimitField::TrafficPumping,
                    &GUARDS,
                    "Somebody pumps traffic by making your program send many messages to numbers \
                     that earn money with them.",
                    limits.text(LimitField::TrafficPumping),
                    form,
                )}
                {field(
                    LimitField::TrafficPumpingMessages,
                    "More messages than this within 10 minutes are suspicious if they go to \
                     numbers that differ only in their last three digits, or to a foreign country \
                     where fewer than 1 in 5 of the last hour's messages were delivered. While \
                     they are refused, so are those to the neighbouring numbers, for 10 minutes."
                        .to_owned(),
                    limits.text(LimitField::TrafficPumpingMessages),
                    form,
                )}
                {choice(
                    LimitField::LeakedKey,
                    &GUARDS,
                    "An API key has leaked if a browser or a link preview uses it, or if it comes \
                     over plain HTTP.",
                    limits.text(LimitField::LeakedKey),
                    form,
                )}
                <Choice
                    label="Changes by API"
                    name=BY_API
                    options=vec![
                        (LOCKED.to_owned(), "Limits change on this page only".to_owned()),
                        (ALLOWED.to_owned(), "The API key may change the limits".to_owned()),
                    ]
                    chosen=by_api
                />
                <StepUpField form/>
                <SubmitButton label="Save limits" form/>
            </PostForm>
        </section>
    }
}

/// The fields for what may be sent, how much, and from where.
fn of_messages(limits: &SendLimits, currency: &str, form: FormState) -> AnyView {
    let zone = limits.zone.as_deref().unwrap_or("UTC, until you choose a time zone under Account");
    view! {
        {choice(
            LimitField::International,
            &[("allowed", "Allowed"), ("off", "Refused")],
            "A number is international unless it has 8 digits and no plus sign.",
            limits.text(LimitField::International),
            form,
        )}
        {field(
            LimitField::Prefixes,
            "For example 27, 49: all other international numbers are refused. Leave the \
             field empty to allow all."
                .to_owned(),
            limits.text(LimitField::Prefixes),
            form,
        )}
        {choice(
            LimitField::RefuseDoubtful,
            &[("false", "Sent, with a warning"), ("true", "Refused")],
            "An international number is doubtful if it begins with 0, has 7 or 9 digits, or is the \
             home country's code and a local number.",
            limits.text(LimitField::RefuseDoubtful),
            form,
        )}
        {field(
            LimitField::PerRecipientHour,
            "Further messages to the same number within 60 minutes are refused. Leave the \
             field empty for no limit."
                .to_owned(),
            limits.text(LimitField::PerRecipientHour),
            form,
        )}
        {field(
            LimitField::PerRecipientDay,
            "Further messages to the same number within 24 hours are refused. Leave the \
             field empty for no limit."
                .to_owned(),
            limits.text(LimitField::PerRecipientDay),
            form,
        )}
        {field(
            LimitField::SpendPerDay,
            format!(
                "An amount in {currency}: messages and files that exceed it are refused \
                 until the next day ({zone}). Money that is released later still counts. Leave the \
                 field empty for no limit.",
            ),
            limits.text(LimitField::SpendPerDay),
            form,
        )}
        {field(
            LimitField::QuietHours,
            format!(
                "For example 21:00-08:00, in the time zone of your account ({zone}): a message \
                 that is due in these hours waits until they end. Leave the field empty for no \
                 quiet hours.",
            ),
            limits.text(LimitField::QuietHours),
            form,
        )}
        {field(
            LimitField::Addresses,
            "For example 192.0.2.7, 2001:db8::/32: requests from other addresses are \
             refused. Leave the field empty to allow all."
                .to_owned(),
            limits.text(LimitField::Addresses),
            form,
        )}
    }
    .into_any()
}

/// Shows how many messages and requests the limits refused.
fn refused(refusals: &[(String, String, i64)]) -> AnyView {
    if refusals.is_empty() {
        return view! { <p>"Within the last 7 days, the limits refused nothing."</p> }.into_any();
    }
    let rows = refusals.iter().map(|(reason, sentence, count)| {
        view! {
            <li>
                {format!("{count}: {sentence} (")}
                <code>{reason.clone()}</code>
                ")"
            </li>
        }
    });
    view! {
        <p>"Within the last 7 days, the limits refused these messages and requests:"</p>
        <ul>{rows.collect_view()}</ul>
    }
    .into_any()
}

/// The choices for what happens if an application is used in a suspicious way.
const GUARDS: [(&str, &str); 3] = [
    (Guard::Alarm.as_str(), "Tell me"),
    (Guard::Block.as_str(), "Tell me and refuse"),
    (Guard::Off.as_str(), "Do nothing"),
];

fn field(limit: LimitField, hint: String, value: String, form: FormState) -> AnyView {
    view! { <Field label=limit.label() name=limit.as_str() hint value form/> }.into_any()
}

/// A list of choices for a limit, of which one is in force.
fn choice(
    limit: LimitField,
    options: &[(&'static str, &'static str)],
    hint: &'static str,
    in_force: String,
    form: FormState,
) -> AnyView {
    let name = limit.as_str();
    let owned = |(value, text): &(&str, &str)| ((*value).to_owned(), (*text).to_owned());
    let options = options.iter().map(owned).collect();
    let chosen = form.typed(name).unwrap_or(in_force);
    view! { <Choice label=limit.label() name options chosen form hint/> }.into_any()
}
