//! The types of events that an endpoint gets.

use domain::EventType;
use leptos::prelude::*;

use crate::ui::FormState;
#[cfg(feature = "ssr")]
use crate::{problem::Cause, problem::Problem};

/// The name of the boxes in a form.
pub const FIELD: &str = "events[]";

/// The types by subject.
const GROUPS: [(&str, &[EventType]); 4] = [
    (
        "Messages",
        &[
            EventType::Submitted,
            EventType::Delivered,
            EventType::Failed,
            EventType::Expired,
            EventType::Rejected,
            EventType::Cancelled,
            EventType::Received,
        ],
    ),
    ("Batches", &[EventType::BatchDone]),
    ("Opt-outs", &[EventType::OptOutAdded, EventType::OptOutRemoved]),
    (
        "Application",
        &[
            EventType::BalanceLow,
            EventType::DepositReceived,
            EventType::Activated,
            EventType::Suspended,
            EventType::Reinstated,
            EventType::SenderAccepted,
            EventType::SenderRejected,
            EventType::KeyReplaced,
            EventType::LimitAlarm,
        ],
    ),
];

/// Reads the chosen types of a form. Returns `None` if none is chosen, which means the default
/// ones.
#[cfg(feature = "ssr")]
pub fn chosen(events: &[String]) -> Result<Option<Vec<EventType>>, Problem> {
    let known = events
        .iter()
        .map(|name| EventType::parse(name).filter(|kind| EventType::NAMED.contains(kind)));
    let types = known.collect::<Option<Vec<_>>>().ok_or(Cause::Unreadable)?;
    Ok((!types.is_empty()).then_some(types))
}

/// Returns the types of an endpoint in words.
pub fn in_words(types: Option<&[EventType]>) -> String {
    match types {
        None => "All types except message.submitted".to_owned(),
        Some(types) => {
            let names: Vec<_> = types.iter().map(|kind| kind.as_str()).collect();
            names.join(", ")
        }
    }
}

/// Boxes for the types of events.
#[component]
pub fn TypesField(
    /// The types that are chosen at first. `None` means the default ones.
    #[prop(optional_no_strip)]
    types: Option<Vec<EventType>>,
    form: FormState,
) -> impl IntoView {
    let refused = form.typed(FIELD);
    let is_chosen = move |kind: EventType| match &refused {
        Some(names) => names.split(',').any(|name| name == kind.as_str()),
        None => types.as_ref().is_some_and(|types| types.contains(&kind)),
    };
    let groups = GROUPS.map(|(name, kinds)| {
        let boxes: Vec<_> = kinds.iter().map(|kind| type_box(*kind, is_chosen(*kind))).collect();
        view! {
            <fieldset class="choices">
                <legend>{name}</legend>
                {boxes}
            </fieldset>
        }
    });
    view! {
        <fieldset class="choices groups" aria-describedby="events-hint">
            <legend>"Events"</legend>
            <p id="events-hint" class="hint">
                "Choose the types of events. If you choose none, the endpoint gets all types \
                 except message.submitted."
            </p>
            {Vec::from(groups)}
        </fieldset>
    }
}

fn type_box(kind: EventType, is_chosen: bool) -> impl IntoView {
    view! {
        <label class="choice">
            <input type="checkbox" name=FIELD value=kind.as_str() checked=is_chosen/>
            <code>{kind.as_str()}</code>
        </label>
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use std::collections::BTreeSet;

    use super::{EventType, GROUPS, chosen};

    #[test]
    fn every_type_that_can_be_chosen_has_one_box() {
        let boxes: Vec<_> = GROUPS.iter().flat_map(|(_, kinds)| kinds.iter()).collect();
        assert_eq!(boxes.len(), EventType::NAMED.len());
        let names: BTreeSet<_> = boxes.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(names, EventType::NAMED.iter().map(|kind| kind.as_str()).collect());
    }

    #[test]
    fn no_choice_means_the_default_types() {
        let read = |names: &[&str]| {
            chosen(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).ok()
        };
        assert_eq!(read(&[]), Some(None));
        assert_eq!(read(&["batch.done"]), Some(Some(vec![EventType::BatchDone])));
        assert_eq!(read(&["batch.done", "nonsense"]), None);
        assert_eq!(read(&["webhook.test"]), None, "nobody chooses test events");
    }
}
