//! What the stable words of reports mean, for a person.

use domain::MessageStatus;

/// The words, each with its sentence. Some are followed by `_` and a number of the network's or the carrier's.
const WORDS: [(&str, &str); 16] = [
    ("no_route", "No carrier takes messages to this number."),
    (
        "invalid_destination",
        "The carrier says that there is no such number.",
    ),
    (
        "invalid_sender",
        "The carrier doesn't take messages from this sender name.",
    ),
    ("invalid_length", "The message is too long for the carrier."),
    (
        "invalid_validity",
        "The carrier doesn't take messages with so little time left.",
    ),
    ("refused", "The carrier refused the message."),
    ("handset_unavailable", "The phone was off or out of reach."),
    (
        "undeliverable",
        "The network couldn't deliver it to the phone.",
    ),
    ("rejected_by_network", "The network rejected the message."),
    (
        "deleted_by_carrier",
        "The carrier deleted it before it was delivered.",
    ),
    (
        "unknown_to_carrier",
        "The carrier doesn't know what became of it.",
    ),
    ("validity_expired", "The phone wasn't reached in time."),
    (
        "no_answer",
        "The carrier never said whether it took it, and no receipt came: it may have arrived.",
    ),
    (
        "no_receipt",
        "The carrier took it, and no receipt came: it may have arrived.",
    ),
    (
        "expired_in_queue",
        "No carrier could take it within 48 hours.",
    ),
    (
        "expired_in_part",
        "Within 48 hours only some of its segments were taken.",
    ),
];

/// What became of a message, as far as its status alone doesn't say it; `None` where nothing is to be added,
/// and for what only a carrier's own documents explain.
pub fn explained(status: MessageStatus, error: Option<&str>) -> Option<&'static str> {
    if status == MessageStatus::Unknown {
        return Some(
            "It was handed to a carrier whose answer was lost: it may have arrived. A receipt may still tell.",
        );
    }
    let error = error?;
    let fits = |word: &str| {
        let rest = error.strip_prefix(word);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    let (_, sentence) = WORDS.into_iter().find(|(word, _)| fits(word))?;
    Some(sentence)
}

#[cfg(test)]
mod tests {
    use domain::MessageStatus;

    use super::explained;

    #[test]
    fn every_word_of_ours_has_a_sentence() {
        for word in [
            "no_route",
            "invalid_destination",
            "invalid_sender",
            "invalid_length",
            "invalid_validity",
            "refused_0x00000045",
            "refused_by_carrier",
            "handset_unavailable",
            "undeliverable",
            "undeliverable_011",
            "rejected_by_network",
            "rejected_by_network_7",
            "deleted_by_carrier",
            "unknown_to_carrier",
            "validity_expired",
            "validity_expired_3",
            "no_answer",
            "no_receipt",
            "expired_in_queue",
            "expired_in_part",
        ] {
            let found = explained(MessageStatus::Rejected, Some(word));
            assert!(found.is_some(), "{word}");
        }
        for word in ["", "no", "no_routes", "HTTP status 400", "Refused"] {
            assert_eq!(
                explained(MessageStatus::Rejected, Some(word)),
                None,
                "{word}"
            );
        }
    }

    #[test]
    fn what_is_unknown_says_so_and_the_rest_speaks_for_itself() {
        for status in MessageStatus::ALL {
            let silent = status != MessageStatus::Unknown;
            assert_eq!(explained(status, None).is_none(), silent, "{status:?}");
        }
    }
}
