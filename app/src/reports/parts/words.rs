//! What the stable words of reports mean, for a person.

use domain::MessageStatus;

/// The words, each with its sentence. Some are followed by `_` and a number of the network's or the
/// carrier's.
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

/// Why a message isn't delivered, as far as is known; `None` while it is on its way, and once it
/// has arrived.
pub fn explained(status: MessageStatus, error: Option<&str>) -> Option<&'static str> {
    // What carriers say in words of their own is explained by its status.
    let in_general = match status {
        MessageStatus::Queued
        | MessageStatus::Sending
        | MessageStatus::Submitted
        | MessageStatus::Delivered => return None,
        MessageStatus::Unknown => {
            return Some(
                "It was handed to a carrier whose answer was lost: it may have arrived. A receipt may still tell.",
            );
        }
        MessageStatus::Failed => "The carrier couldn't deliver it.",
        MessageStatus::Expired => "It wasn't delivered in time.",
        MessageStatus::Rejected => "The carrier refused the message.",
    };
    let error = error.unwrap_or_default();
    let fits = |word: &str| {
        let rest = error.strip_prefix(word);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    let ours = WORDS.into_iter().find(|(word, _)| fits(word));
    Some(ours.map_or(in_general, |(_, sentence)| sentence))
}

#[cfg(test)]
mod tests {
    use domain::MessageStatus;

    use super::explained;

    const CASES: [(MessageStatus, &str, &str); 19] = [
        (MessageStatus::Rejected, "no_route", "No carrier takes"),
        (
            MessageStatus::Rejected,
            "invalid_destination",
            "no such number",
        ),
        (
            MessageStatus::Rejected,
            "invalid_sender",
            "this sender name",
        ),
        (MessageStatus::Rejected, "invalid_length", "too long"),
        (
            MessageStatus::Rejected,
            "invalid_validity",
            "so little time",
        ),
        (
            MessageStatus::Rejected,
            "refused_0x00000045",
            "refused the message",
        ),
        (
            MessageStatus::Rejected,
            "refused_by_carrier",
            "refused the message",
        ),
        (
            MessageStatus::Failed,
            "handset_unavailable",
            "off or out of reach",
        ),
        (
            MessageStatus::Failed,
            "undeliverable",
            "network couldn't deliver",
        ),
        (
            MessageStatus::Failed,
            "undeliverable_011",
            "network couldn't deliver",
        ),
        (
            MessageStatus::Failed,
            "rejected_by_network_7",
            "The network rejected",
        ),
        (MessageStatus::Failed, "deleted_by_carrier", "deleted it"),
        (
            MessageStatus::Failed,
            "unknown_to_carrier",
            "doesn't know what became",
        ),
        (
            MessageStatus::Expired,
            "validity_expired_3",
            "wasn't reached in time",
        ),
        (
            MessageStatus::Expired,
            "no_answer",
            "never said whether it took it",
        ),
        (
            MessageStatus::Expired,
            "no_receipt",
            "took it, and no receipt came",
        ),
        (
            MessageStatus::Expired,
            "expired_in_queue",
            "No carrier could take it",
        ),
        (
            MessageStatus::Expired,
            "expired_in_part",
            "some of its segments",
        ),
        // A word that only begins like one of ours.
        (MessageStatus::Rejected, "no_routes", "refused the message"),
    ];

    #[test]
    fn every_word_of_ours_has_a_sentence() {
        for (status, word, part) in CASES {
            let sentence = explained(status, Some(word)).unwrap();
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
