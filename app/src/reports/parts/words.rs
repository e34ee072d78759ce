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
    (
        "handset_unavailable",
        "The phone was switched off or out of reach.",
    ),
    (
        "undeliverable",
        "The network couldn't deliver the message to the phone.",
    ),
    ("rejected_by_network", "The network rejected the message."),
    (
        "deleted_by_carrier",
        "The carrier deleted the message before it was delivered.",
    ),
    (
        "unknown_to_carrier",
        "The carrier doesn't know what became of the message.",
    ),
    (
        "validity_expired",
        "The phone wasn't reached before the message's time was over.",
    ),
    (
        "no_answer",
        "The carrier never said whether it took the message, and no receipt came: it may have arrived.",
    ),
    (
        "no_receipt",
        "The carrier took the message, and no receipt came: it may have arrived.",
    ),
    (
        "expired_in_queue",
        "No carrier could take the message within 48 hours.",
    ),
    (
        "expired_in_part",
        "Within 48 hours carriers took only some segments of the message.",
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
