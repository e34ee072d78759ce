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

/// Returns a sentence that says what happened, and one that says what to do.
fn explained(status: MessageStatus, error: Option<&str>) -> Option<(&'static str, &'static str)> {
    let by_status = (status.step(), status.advice()?);
    if !status.is_final() {
        return Some(by_status);
    }
    // A text that is none of the codes gets the sentences of the status.
    let error = error.and_then(DeliveryError::parse);
    Some(error.map_or(by_status, |error| (error.meaning(), error.advice())))
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
