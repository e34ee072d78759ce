//! Maps a `command_status` to the outcome of a submit (SMPP 3.4, 5.1.3).

use ::smpp::{UnknownCause, status_code};
use domain::DeliveryError;
use service::SubmitOutcome;

/// ESME_RSUBMITFAIL.
const SUBMIT_FAILED: u32 = 0x45;

/// Returns the outcome of a submit that was refused.
pub(super) fn outcome(status: u32) -> SubmitOutcome {
    let error = error(status);
    match status {
        status_code::THROTTLED | status_code::QUEUE_FULL => SubmitOutcome::Throttled { error },
        // Many carriers return the last two for temporary faults that have nothing to do with the
        // message.
        status_code::TEMPORARY_ERROR
        | status_code::SYSTEM_ERROR
        | status_code::INCORRECT_BIND_STATUS
        | SUBMIT_FAILED
        | status_code::UNKNOWN_ERROR => SubmitOutcome::Temporary { error },
        _ => SubmitOutcome::Refused { error },
    }
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
        SUBMIT_FAILED => "submit_failed",
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
