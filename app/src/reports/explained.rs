//! Why a message wasn't delivered, in sentences.

use domain::{DeliveryError, MessageStatus};

/// Why a message isn't delivered, as far as is known; `None` while it is on its way, and once it
/// has arrived. `error` is what its report names.
pub fn explained(status: MessageStatus, error: Option<&str>) -> Option<&'static str> {
    // An error in the carrier's own words gets the sentence of the status.
    let by_status = match status {
        MessageStatus::Queued
        | MessageStatus::Sending
        | MessageStatus::Submitted
        | MessageStatus::Delivered => return None,
        MessageStatus::Unknown => {
            return Some(
                "It was handed to a carrier whose answer was lost: it may have arrived. A receipt \
                 may still tell.",
            );
        }
        MessageStatus::Failed => "The carrier couldn't deliver it.",
        MessageStatus::Expired => "It wasn't delivered in time.",
        MessageStatus::Rejected => "The carrier refused the message.",
    };
    Some(
        error
            .and_then(DeliveryError::parse)
            .map_or(by_status, sentence),
    )
}

const fn sentence(error: DeliveryError) -> &'static str {
    match error {
        DeliveryError::NoRoute => "No carrier takes messages to this number.",
        DeliveryError::InvalidDestination => "The carrier says that there is no such number.",
        DeliveryError::InvalidSender => "The carrier doesn't take messages from this sender name.",
        DeliveryError::InvalidLength => "The message is too long for the carrier.",
        DeliveryError::InvalidValidity => {
            "The carrier doesn't take messages with so little time left."
        }
        DeliveryError::Refused => "The carrier refused the message.",
        DeliveryError::HandsetUnavailable => "The phone was off or out of reach.",
        DeliveryError::Undeliverable => "The network couldn't deliver it to the phone.",
        DeliveryError::RejectedByNetwork => "The network rejected the message.",
        DeliveryError::DeletedByCarrier => "The carrier deleted it before it was delivered.",
        DeliveryError::UnknownToCarrier => "The carrier doesn't know what became of it.",
        DeliveryError::ValidityExpired => "The phone wasn't reached in time.",
        DeliveryError::NoAnswer => {
            "The carrier never said whether it took it, and no receipt came: it may have arrived."
        }
        DeliveryError::NoReceipt => {
            "The carrier took it, and no receipt came: it may have arrived."
        }
        DeliveryError::ExpiredInQueue => "No carrier could take it within 48 hours.",
        DeliveryError::ExpiredInPart => "Within 48 hours only some of its segments were taken.",
    }
}

#[cfg(test)]
mod tests {
    use domain::{DeliveryError, MessageStatus};

    use super::explained;

    #[test]
    fn every_error_has_a_sentence_of_its_own() {
        let sentences: std::collections::HashSet<_> = DeliveryError::ALL
            .into_iter()
            .map(|error| explained(MessageStatus::Expired, Some(error.as_str())))
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
            let sentence = explained(MessageStatus::Failed, Some(word)).unwrap();
            assert!(sentence.contains(part), "{word}: {sentence}");
        }
    }

    #[test]
    fn a_status_is_explained_unless_it_speaks_for_itself() {
        for status in MessageStatus::ALL {
            let speaks = matches!(
                status,
                MessageStatus::Queued
                    | MessageStatus::Sending
                    | MessageStatus::Submitted
                    | MessageStatus::Delivered
            );
            for error in [None, Some("HTTP status 400 blocked")] {
                assert_eq!(explained(status, error).is_none(), speaks, "{status:?}");
            }
        }
    }
}
