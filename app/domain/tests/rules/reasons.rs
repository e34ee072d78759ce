//! The refusals of the SMS API: every reason with its code and its HTTP status.

use std::collections::HashSet;

use domain::Reason;
use domain::reason::CODE_SUCCESS;

/// The contract's table: reason, code, HTTP status.
const TABLE: [(Reason, &str, u16, u16); 42] = [
    (Reason::MissingParameter, "missing_parameter", 500, 400),
    (Reason::DuplicateParameter, "duplicate_parameter", 500, 400),
    (Reason::InvalidNumber, "invalid_number", 500, 400),
    (Reason::InvalidMessage, "invalid_message", 500, 400),
    (Reason::MessageTooLong, "message_too_long", 500, 400),
    (Reason::InvalidRequestid, "invalid_requestid", 500, 400),
    (Reason::InvalidParameter, "invalid_parameter", 500, 400),
    (Reason::AmbiguousBulk, "ambiguous_bulk", 500, 400),
    (Reason::InvalidFile, "invalid_file", 500, 400),
    (Reason::InvalidEncoding, "invalid_encoding", 500, 400),
    (Reason::SenderPending, "sender_pending", 500, 403),
    (Reason::SenderRejected, "sender_rejected", 500, 403),
    (Reason::OptedOut, "opted_out", 500, 403),
    (Reason::TestKeyRequired, "test_key_required", 500, 403),
    (Reason::InternationalDisabled, "international_disabled", 500, 403),
    (Reason::DoubtfulNumber, "doubtful_number", 500, 403),
    (Reason::TrafficPumping, "traffic_pumping", 500, 403),
    (Reason::AddressNotAllowed, "address_not_allowed", 500, 403),
    (Reason::LeakedKey, "leaked_key", 500, 403),
    (Reason::LimitsLocked, "limits_locked", 500, 403),
    (Reason::RecipientFlooded, "recipient_flooded", 500, 429),
    (Reason::SpendCapReached, "spend_cap_reached", 500, 429),
    (Reason::NotFound, "not_found", 500, 404),
    (Reason::MethodNotAllowed, "method_not_allowed", 500, 405),
    (Reason::Timeout, "timeout", 500, 408),
    (Reason::TooLarge, "too_large", 500, 413),
    (Reason::UnsupportedMediaType, "unsupported_media_type", 500, 415),
    (Reason::IdempotencyInProgress, "idempotency_in_progress", 500, 409),
    (Reason::InvalidUrl, "invalid_url", 500, 400),
    (Reason::TooManyWebhooks, "too_many_webhooks", 500, 409),
    (Reason::NotCancellable, "not_cancellable", 500, 409),
    (Reason::BatchEnded, "batch_ended", 500, 409),
    (Reason::VerifyEnded, "verify_ended", 500, 409),
    (Reason::IdempotencyMismatch, "idempotency_mismatch", 500, 422),
    (Reason::RateLimited, "rate_limited", 500, 429),
    (Reason::Internal, "internal", 500, 500),
    (Reason::Unavailable, "unavailable", 500, 503),
    (Reason::InsufficientFunds, "insufficient_funds", 501, 402),
    (Reason::ApiPending, "api_pending", 502, 403),
    (Reason::ApiSuspended, "api_suspended", 503, 403),
    (Reason::ApiInvalid, "api_invalid", 504, 401),
    (Reason::ApiNotApplicable, "api_not_applicable", 505, 403),
];

#[test]
fn every_reason_has_the_code_and_the_status_of_the_table() {
    for (reason, word, code, http_status) in TABLE {
        assert_eq!(reason.as_str(), word);
        assert_eq!(reason.code(), code, "{word}");
        assert_eq!(reason.http_status(), http_status, "{word}");
    }
    assert_eq!(CODE_SUCCESS, 200);
}

#[test]
fn the_table_has_every_reason() {
    let listed: HashSet<Reason> = Reason::ALL.into_iter().collect();
    let tabled: HashSet<Reason> = TABLE.into_iter().map(|row| row.0).collect();
    assert_eq!(listed.len(), Reason::ALL.len());
    assert_eq!(listed, tabled);
    let words: HashSet<&str> = Reason::ALL.into_iter().map(Reason::as_str).collect();
    assert_eq!(words.len(), Reason::ALL.len());
}

#[test]
fn a_business_answer_has_no_status_that_clients_retry() {
    for reason in Reason::ALL {
        assert!(![502, 504].contains(&reason.http_status()), "{}", reason.as_str());
        assert_eq!(
            reason.http_status() == 503,
            reason == Reason::Unavailable,
            "{}",
            reason.as_str()
        );
        assert!((400..=503).contains(&reason.http_status()), "{}", reason.as_str());
    }
}

#[test]
fn every_reason_is_a_word_and_a_sentence() {
    let sentences: HashSet<&str> = Reason::ALL.into_iter().map(Reason::sentence).collect();
    assert_eq!(sentences.len(), Reason::ALL.len());
    for reason in Reason::ALL {
        assert!(reason.as_str().bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
        let sentence = reason.sentence();
        assert!(sentence.ends_with('.'), "{sentence}");
        assert!(sentence.starts_with(|c: char| c.is_ascii_uppercase()), "{sentence}");
        assert!(!sentence.contains("  ") && sentence.len() <= 160, "{sentence}");
    }
}
