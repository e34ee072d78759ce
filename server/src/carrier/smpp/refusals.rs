//! Maps a `command_status` to the outcome of a submit (SMPP 3.4, 5.1.3).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ::smpp::{Fault, FaultKind, Reaction, UnknownCause, command_status, status_code};
use domain::DeliveryError;
use service::SubmitOutcome;

use crate::config::carriers::{SubmitAction, SubmitStatus};

/// After this many refusals in a row with the same status, the status is taken to concern every
/// message.
const EQUAL_MIN: u32 = 10;
/// Statuses about the sender (SMPP 3.4, 5.1.3). They concern all messages only if messages with
/// different senders get them.
const OF_SENDER: [u32; 3] = [status_code::INVALID_SOURCE, 0x48, 0x49];

/// The meaning of a refused submit.
pub(super) struct Refusal {
    /// For the message.
    pub(super) outcome: SubmitOutcome,
    /// For operators.
    pub(super) fault: Fault,
}

/// Notices that a carrier refuses every message with a status that normally concerns one message.
/// Such a status means that the account or its settings are wrong, for example if no sender is
/// registered. Holding the messages keeps a whole batch from being rejected.
#[derive(Default)]
pub(super) struct EqualRefusals {
    status: u32,
    /// How many refusals in a row had this status.
    count: u32,
    /// The sender of the first of these refusals, and whether a later one had a different sender.
    sender: String,
    several: bool,
    /// The sender of the first submitted message, and whether a later one had a different sender.
    first_sender: Option<String>,
    several_senders: bool,
    /// The status that every message gets, or 0. The session reads it.
    of_all: Arc<AtomicU32>,
}

impl EqualRefusals {
    /// Returns the reaction of the session to refused submits.
    pub(super) fn reaction(&self, actions: SubmitStatus) -> impl Fn(u32) -> Reaction + use<> {
        let of_all = Arc::clone(&self.of_all);
        move |status| {
            let is_of_all = of_all.load(Ordering::Relaxed) == status;
            let action = if is_of_all { SubmitAction::Hold } else { actions.action(status) };
            reaction(action)
        }
    }

    /// Notes the sender of a message that is submitted.
    pub(super) fn submit(&mut self, sender: &str) {
        let first = self.first_sender.get_or_insert_with(|| sender.to_owned());
        self.several_senders |= first != sender;
    }

    /// Notes that the carrier accepted a message.
    pub(super) fn accepted(&mut self) {
        self.count = 0;
        self.of_all.store(0, Ordering::Relaxed);
    }

    /// Notes a refusal. Returns true if its status concerns every message.
    pub(super) fn refused(&mut self, status: u32, sender: &str, actions: &SubmitStatus) -> bool {
        let is_of_sender = OF_SENDER.contains(&status);
        let counts = is_of_sender || FaultKind::is_of_parameter(status);
        if !counts || actions.is_set(status) || actions.action(status) != SubmitAction::NextRoute {
            return false;
        }
        if self.count == 0 || self.status != status {
            (self.status, self.count, self.several) = (status, 0, false);
            sender.clone_into(&mut self.sender);
        }
        self.count += 1;
        self.several |= self.sender != sender;
        let concerns_all = !is_of_sender || self.several || !self.several_senders;
        if self.count < EQUAL_MIN || !concerns_all {
            return false;
        }
        self.of_all.store(status, Ordering::Relaxed);
        true
    }
}

/// Returns the meaning of a refusal whose status concerns every message.
pub(super) fn of_all(status: u32) -> Refusal {
    let outcome = SubmitOutcome::Held { error: error(status) };
    Refusal { outcome, fault: Fault::submit(FaultKind::SubmitRefusedAll, status) }
}

/// Returns the meaning of a refused submit with this action.
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
const fn reaction(action: SubmitAction) -> Reaction {
    match action {
        SubmitAction::Throttle => Reaction::Throttle,
        SubmitAction::Hold => Reaction::Hold,
        SubmitAction::Retry | SubmitAction::NextRoute | SubmitAction::Reject => Reaction::None,
    }
}

/// Returns the meaning and the SMPP name of the status in a code from [`error`]. Returns `None` if
/// the code has no status, or an unknown one.
pub fn status_words(code: &str) -> Option<String> {
    let (_, hex) = code.split_once("_0x")?;
    let status = command_status::find(u32::from_str_radix(hex, 16).ok()?)?;
    Some(format!("{}, {}", status.meaning, status.name))
}

/// Returns the documented code for the status, for customers. A status without a code of its own
/// gets one with its number.
fn error(status: u32) -> String {
    let error = match status {
        status_code::INVALID_MESSAGE_LENGTH => DeliveryError::InvalidLength,
        status_code::INVALID_SOURCE => DeliveryError::InvalidSender,
        status_code::INVALID_DESTINATION => DeliveryError::InvalidDestination,
        status_code::INVALID_VALIDITY => DeliveryError::InvalidValidity,
        _ => return format!("{}_0x{status:08x}", DeliveryError::Refused.as_str()),
    };
    error.as_str().to_owned()
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
        let rows = FaultKind::WORDS.iter().map(|words| {
            format!(
                "| `{}` | {} | {}. | {}. |\n",
                words.code, words.sign, words.sentence, words.next_step
            )
        });
        let table: String = std::iter::once(head.to_owned()).chain(rows).collect();
        assert!(GUIDE.contains(&format!("{table}\n")), "docs/OPERATIONS.md needs:\n{table}");
    }

    #[test]
    fn the_guide_has_every_status_whose_action_isnt_next_route() {
        let head = "| number | name | meaning | action |\n|---|---|---|---|\n";
        let rows = command_status::KNOWN.iter().filter_map(|known| {
            let action = SubmitAction::by_default(known.number).as_str();
            let (number, name, meaning) = (known.number, known.name, known.meaning);
            let row = format!("| `0x{number:08x}` | {name} | {meaning} | `{action}` |\n");
            (action != "next_route").then_some(row)
        });
        let table: String = std::iter::once(head.to_owned()).chain(rows).collect();
        assert!(GUIDE.contains(&format!("{table}\n")), "docs/OPERATIONS.md needs:\n{table}");
    }

    #[test]
    fn equal_refusals_concern_all_messages_only_if_their_senders_differ() {
        let actions = SubmitStatus::default();
        let refuse = |equal: &mut EqualRefusals, status, senders: &[&str]| {
            let senders = senders.iter().cycle().take(20);
            senders.filter(|sender| equal.refused(status, sender, &actions)).count()
        };
        let mut equal = EqualRefusals::default();
        equal.submit("Acme");
        // An installation with one sender.
        assert_eq!(refuse(&mut equal, 0x0A, &["Acme"]), 11);
        equal.accepted();
        equal.submit("Beta");
        assert_eq!(refuse(&mut equal, 0x0A, &["Acme"]), 0);
        assert_eq!(refuse(&mut equal, 0x0A, &["Acme", "Beta"]), 19);
        assert_eq!(refuse(&mut equal, 0xC3, &["Acme"]), 11);
        // A number that doesn't exist is the message's own fault.
        assert_eq!(refuse(&mut equal, 0x0B, &["Acme", "Beta"]), 0);
    }

    #[test]
    fn a_code_with_a_number_has_the_words_of_its_status() {
        let words = status_words(&error(0x58));
        assert_eq!(words.as_deref(), Some("we exceeded the allowed rate, ESME_RTHROTTLED"));
        assert_eq!(status_words(&error(0x401)), None);
        assert_eq!(status_words("http_500"), None);
    }
}
