//! Stable codes for why a message wasn't delivered.

use std::collections::HashSet;

use domain::DeliveryError;

#[test]
fn every_word_is_read_back_alone_and_with_a_number() {
    for error in DeliveryError::ALL {
        let word = error.as_str();
        assert!(word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
        assert_eq!(DeliveryError::parse(word), Some(error));
        assert_eq!(DeliveryError::parse(&format!("{word}_011")), Some(error));
    }
    let words: HashSet<&str> = DeliveryError::ALL.map(DeliveryError::as_str).into();
    assert_eq!(words.len(), DeliveryError::ALL.len());
}

#[test]
fn what_carriers_add_follows_the_word() {
    for (text, error) in [
        ("refused_0x00000045", DeliveryError::Refused),
        ("refused_by_carrier", DeliveryError::Refused),
        ("undeliverable_011", DeliveryError::Undeliverable),
        ("handset_unavailable_30003", DeliveryError::HandsetUnavailable),
        ("validity_expired_3", DeliveryError::ValidityExpired),
    ] {
        assert_eq!(DeliveryError::parse(text), Some(error), "{text}");
    }
}

#[test]
fn other_words_are_none_of_ours() {
    for text in ["", "no_routes", "no", "HTTP status 400 blocked", "Refused", "_refused"] {
        assert_eq!(DeliveryError::parse(text), None, "{text}");
    }
}
