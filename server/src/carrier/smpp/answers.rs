//! Answers to submits as the carrier wrote them, for staff.

use ::smpp::{Outcome, command_status, status_code};
use domain::Transid;
use service::{RawReceipt, SubmitOutcome};

use super::super::escaped;

/// The maximum length of an escaped message ID. SMPP allows 64 octets (3.4, 5.2.23), and each may
/// need an escape.
const ID_CHARS_MAX: usize = 255;

/// The fields of a submit_sm_resp (SMPP 3.4, 4.4.2).
pub(super) struct WrittenAnswer {
    command_status: u32,
    message_id: Option<String>,
}

/// Returns the carrier's answer to a submit, if staff may need it. They don't need an answer that
/// accepts with a message ID: the ID is stored with the message.
pub(super) fn written(outcome: &Outcome) -> Option<WrittenAnswer> {
    match outcome {
        Outcome::Accepted { message_id: None } => {
            Some(WrittenAnswer { command_status: status_code::OK, message_id: None })
        }
        Outcome::Refused { status, message_id } => {
            Some(WrittenAnswer { command_status: *status, message_id: message_id.clone() })
        }
        _ => None,
    }
}

/// Returns an answer in the form that is kept for staff. `outcome` is its meaning. `id` and
/// `number` are the message's.
pub(super) fn raw(
    written: WrittenAnswer,
    outcome: &SubmitOutcome,
    (id, number): (Transid, &str),
) -> Option<RawReceipt> {
    let answer = RawReceipt::of_answer(outcome, id, number)?;
    let status = written.command_status;
    let name = match status {
        status_code::OK => Some("ESME_ROK"),
        _ => command_status::find(status).map(|known| known.name),
    };
    let state = match name {
        Some(name) => format!("{name} 0x{status:08x}"),
        None => format!("0x{status:08x}"),
    };
    let message_id = written.message_id.as_deref().unwrap_or_default();
    let message_id = escaped(message_id.as_bytes(), ID_CHARS_MAX);
    let raw = format!("command_status={state} message_id={message_id}");
    Some(RawReceipt { text_id: written.message_id, state, raw, ..answer })
}
