//! Maps a `command_status` to the outcome of a submit (SMPP 3.4, 5.1.3).

use ::smpp::{Fault, FaultKind, Reaction, UnknownCause, command_status, status_code};
use domain::DeliveryError;
use service::SubmitOutcome;

use crate::config::carriers::SubmitAction;

/// What a refused submit means.
pub(super) struct Refusal {
    /// For the message.
    pub(super) outcome: SubmitOutcome,
    /// For operators.
    pub(super) fault: Fault,
}

/// Returns what a refused submit means if it is followed by this action.
pub(super) fn read(status: u32, action: SubmitAction) -> Refusal {
    let error = error(status);
    let refused = if FaultKind::is_of_parameter(status) {
        FaultKind::SubmitParameter
    } else {
        FaultKind::SubmitRefused
    };
    let (outcome, kind) = match action {
        SubmitAction::Throttle => (SubmitOutcome::Throttled { error }, FaultKind::SubmitThrottled),
        SubmitAction::Retry => (SubmitOutcome::Temporary { error }, FaultKind::SubmitTemporary),
        SubmitAction::Hold => (SubmitOutcome::Held { error }, FaultKind::SubmitHeld),
        SubmitAction::NextRoute => (SubmitOutcome::Refused { error }, refused),
        SubmitAction::Reject => (SubmitOutcome::Rejected { error }, refused),
    };
    Refusal { outcome, fault: Fault::submit(kind, status) }
}

/// Returns how the session reacts to the action of a refused submit.
pub(super) const fn reaction(action: SubmitAction) -> Reaction {
    match action {
        SubmitAction::Throttle => Reaction::Throttle,
        SubmitAction::Hold => Reaction::Hold,
        SubmitAction::Retry | SubmitAction::NextRoute | SubmitAction::Reject => Reaction::None,
    }
}

/// Returns the SMPP name of the status in a code that [`error`] made, if it has one.
pub fn status_name(code: &str) -> Option<&'static str> {
    let (_, hex) = code.split_once("_0x")?;
    Some(command_status::find(u32::from_str_radix(hex, 16).ok()?)?.name)
}

/// Returns a stable code for the status. A status without a code of its own gets one with its
/// number.
fn error(status: u32) -> String {
    let word = match status {
        status_code::INVALID_MESSAGE_LENGTH => DeliveryError::InvalidLength.as_str(),
        status_code::INCORRECT_BIND_STATUS => "not_bound",
        status_code::SYSTEM_ERROR => "carrier_error",
        status_code::INVALID_SOURCE => DeliveryError::InvalidSender.as_str(),
        status_code::INVALID_DESTINATION => DeliveryError::InvalidDestination.as_str(),
        status_code::SUBMIT_FAILED => "submit_failed",
        status_code::UNKNOWN_ERROR => "unknown_error",
        status_code::QUEUE_FULL => "carrier_queue_full",
        status_code::THROTTLED => "throttled",
        status_code::INVALID_VALIDITY => DeliveryError::InvalidValidity.as_str(),
        status_code::TEMPORARY_ERROR => "carrier_busy",
        _ => return format!("{}_0x{status:08x}", DeliveryError::Refused.as_str()),
    };
    word.to_owned()
}

/// Returns why the answer to a submit is lost.
pub(super) const fn lost(cause: UnknownCause) -> &'static str {
    match cause {
        UnknownCause::NoAnswer => "the carrier didn't answer in time",
        UnknownCause::ConnectionLost => "the connection was lost before the carrier's answer",
        UnknownCause::Closed => "the service stopped before the carrier's answer",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUIDE: &str = include_str!("../../../../docs/OPERATIONS.md");

    #[test]
    fn the_guide_has_every_fault_and_its_next_step() {
        let head = "| fault | sign | what it says | next step |\n|---|---|---|---|\n";
        let rows = FaultKind::ALL.iter().map(|kind| {
            let words = kind.words();
            format!(
                "| `{}` | {} | {}. | {}. |\n",
                words.code, words.sign, words.sentence, words.next_step
            )
        });
        let table: String = std::iter::once(head.to_owned()).chain(rows).collect();
        assert!(GUIDE.contains(&format!("{table}\n")), "docs/OPERATIONS.md needs:\n{table}");
    }

    #[test]
    fn the_guide_has_every_status_and_its_action() {
        let head = "| number | name | meaning | action |\n|---|---|---|---|\n";
        let rows = command_status::KNOWN.iter().map(|known| {
            let action = SubmitAction::by_default(known.number).as_str();
            let (number, name, meaning) = (known.number, known.name, known.meaning);
            format!("| `0x{number:08x}` | {name} | {meaning} | `{action}` |\n")
        });
        let table: String = std::iter::once(head.to_owned()).chain(rows).collect();
        assert!(GUIDE.contains(&format!("{table}\n")), "docs/OPERATIONS.md needs:\n{table}");
    }

    #[test]
    fn a_code_with_a_number_has_the_statuses_name() {
        assert_eq!(status_name(&error(0x0C)), Some("ESME_RINVMSGID"));
        assert_eq!(status_name(&error(0x401)), None);
        assert_eq!(status_name("http_500"), None);
    }
}
