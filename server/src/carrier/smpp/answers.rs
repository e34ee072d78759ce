//! Answers to submits as the carrier wrote them, for staff.

use ::smpp::{Outcome, command_status, status_code};
use domain::Transid;
use service::{RawReceipt, SubmitOutcome};

use super::super::escaped;

/// The maximum length of a message ID, which has at most 64 octets (SMPP 3.4, 5.2.23).
const ID_CHARS_MAX: usize = 255;

/// The fields of a submit_sm_resp (SMPP 3.4, 4.4.2).
pub(super) struct WrittenAnswer {
    command_status: u32,
    message_id: Option<String>,
}

/// Returns the answer of a submit. Returns `None` if there was none, or if it has nothing to keep
/// but the message ID, which is stored with the message.
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

/// Returns an answer to keep. `outcome` is what was made of it, and `recipient` has the message and
/// its number.
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
