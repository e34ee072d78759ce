//! Sentences that say why a message wasn't delivered, and what to do about it.

use domain::{DeliveryError, MessageStatus};

/// Returns why a message isn't delivered, as far as we know. Returns `None` while the message is on
/// its way and once it is delivered. `error` is the error in the message's report.
pub fn meaning(status: MessageStatus, error: Option<&str>) -> Option<&'static str> {
    explained(status, error).map(|(meaning, _)| meaning)
}

/// Returns what to do about a message that isn't delivered. Returns `None` whenever [`meaning`]
/// does.
pub fn advice(status: MessageStatus, error: Option<&str>) -> Option<&'static str> {
    explained(status, error).map(|(_, advice)| advice)
}

/// A sentence that says what happened, and one that says what to do.
pub type Sentences = (&'static str, &'static str);

const ASK_FOR_THE_NUMBER: &str =
    "Ask the person for the number again, with the country code if it is abroad.";
const SEND_AGAIN_LATER: &str =
    "Send the message again later. If it fails again, reach the person another way.";
const ASK_BEFORE_SENDING: &str =
    "Ask the person whether it arrived before you send it again. Otherwise it may arrive twice.";
const ASK_SUPPORT: &str =
    "If this happens to other messages too, contact support and quote the transaction ID.";

fn explained(status: MessageStatus, error: Option<&str>) -> Option<Sentences> {
    let by_status = status.describe().trouble?;
    if !status.is_final() {
        return Some(by_status);
    }
    // A text that is none of the codes gets the sentences of the status.
    Some(error.and_then(DeliveryError::parse).map_or(by_status, sentences))
}

/// Returns what an error means, and what to do about it.
pub const fn sentences(error: DeliveryError) -> Sentences {
    match error {
        DeliveryError::NoRoute => (
            "No carrier accepts messages to this number.",
            "Check the country code. If it is right, ask support whether the country is served.",
        ),
        DeliveryError::OptedOut => (
            "The recipient doesn't want messages from this application.",
            "Don't send to this number. The application's list of opt-outs has it.",
        ),
        DeliveryError::InternationalDisabled => (
            "The application's limits don't allow this destination.",
            "If the destination is right, allow it in the application's settings.",
        ),
        DeliveryError::DoubtfulNumber => (
            "The number is probably a mistake, and the application's limits refuse such numbers.",
            "Check the number. Write a local number with 8 digits, and an international one with \
             its country code.",
        ),
        DeliveryError::RecipientFlooded => (
            "The recipient had as many messages as the application's limits allow.",
            "Check why so many messages go to this recipient.",
        ),
        DeliveryError::TrafficPumping => (
            "Too many messages went to numbers like this one.",
            "Find out who asks for these messages before you send more.",
        ),
        DeliveryError::InvalidDestination => {
            ("The carrier says that there is no such number.", ASK_FOR_THE_NUMBER)
        }
        DeliveryError::InvalidSender => (
            "The carrier doesn't accept messages from this sender name.",
            "Ask support whether the name can be registered, or request another sender name.",
        ),
        DeliveryError::InvalidLength => {
            ("The message is too long for the carrier.", "Shorten the text, or send it in parts.")
        }
        DeliveryError::InvalidValidity => (
            "The carrier doesn't accept messages with so little time left.",
            "Send the message again.",
        ),
        DeliveryError::Refused => ("The carrier refused the message.", ASK_SUPPORT),
        DeliveryError::HandsetUnavailable => {
            ("The phone was off or out of reach.", SEND_AGAIN_LATER)
        }
        DeliveryError::Undeliverable => {
            ("The network couldn't deliver it to the phone.", SEND_AGAIN_LATER)
        }
        DeliveryError::RejectedByNetwork => (
            "The network rejected the message.",
            "Ask the person whether messages of your sender name are blocked on the phone.",
        ),
        DeliveryError::DeletedByCarrier => {
            ("The carrier deleted it before it was delivered.", SEND_AGAIN_LATER)
        }
        DeliveryError::UnknownToCarrier => {
            ("The carrier doesn't know what became of it.", ASK_BEFORE_SENDING)
        }
        DeliveryError::ValidityExpired => ("The phone wasn't reached in time.", SEND_AGAIN_LATER),
        DeliveryError::NoAnswer => (
            "The carrier never said whether it accepted the message, and sent no receipt. The \
             message may have arrived.",
            ASK_BEFORE_SENDING,
        ),
        DeliveryError::NoReceipt => (
            "The carrier accepted the message but sent no receipt. The message may have arrived.",
            ASK_BEFORE_SENDING,
        ),
        DeliveryError::ExpiredInQueue => (
            "No carrier could accept it within 48 hours.",
            "Send the message again if it is still useful.",
        ),
        DeliveryError::Validity => (
            "Its validity ended before a carrier could accept it.",
            "Send the message again if it is still useful, or with a longer validity.",
        ),
        DeliveryError::ExpiredInPart => {
            ("Carriers accepted only some of its segments in time.", ASK_BEFORE_SENDING)
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::{DeliveryError, MessageStatus};

    use super::{advice, meaning};

    #[test]
    fn every_error_has_a_sentence_of_its_own() {
        let sentences: std::collections::HashSet<_> = DeliveryError::ALL
            .into_iter()
            .map(|error| meaning(MessageStatus::Expired, Some(error.as_str())))
            .collect();
        assert_eq!(sentences.len(), DeliveryError::ALL.len());
        assert!(!sentences.contains(&None));
    }

    #[test]
    fn a_word_is_explained_with_and_without_the_number_that_follows_it() {
        for (word, part) in [
            ("refused_0x00000045", "refused the message"),
            ("undeliverable", "network couldn't deliver"),
            ("undeliverable_011", "network couldn't deliver"),
            ("rejected_by_network_7", "The network rejected"),
        ] {
            let sentence = meaning(MessageStatus::Failed, Some(word)).unwrap();
            assert!(sentence.contains(part), "{word}: {sentence}");
        }
    }

    #[test]
    fn a_status_is_explained_unless_it_speaks_for_itself() {
        for status in MessageStatus::ALL {
            let speaks = !matches!(
                status,
                MessageStatus::Unknown
                    | MessageStatus::Failed
                    | MessageStatus::Expired
                    | MessageStatus::Rejected
            );
            for error in [None, Some("HTTP status 400 blocked")] {
                assert_eq!(meaning(status, error).is_none(), speaks, "{status:?}");
                assert_eq!(advice(status, error).is_none(), speaks, "{status:?}");
            }
        }
    }
}
