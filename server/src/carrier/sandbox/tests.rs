use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use domain::MessageText;

use super::*;

const START_MS: i64 = 1_800_000_000_000;
const DELAY_MS: i64 = 500;
/// Longer than any of these tests.
const LONG: Duration = Duration::from_mins(1);

/// Returns the receipt of a message to this number: its time in milliseconds after the submit,
/// its status and its error.
fn receipt(number: &str) -> (i64, MessageStatus, Option<String>) {
    let now = Arc::new(AtomicI64::new(START_MS));
    let sandbox = Sandbox::new(Clock::fixed(Arc::clone(&now)), DELAY_MS.unsigned_abs());
    sandbox.expect_receipts(&[Outstanding {
        id: Transid(1),
        application_id: ApplicationId(1),
        test: true,
        number: Number::parse(number).unwrap(),
        submitted_at: Timestamp::from_unix_ms(START_MS),
    }]);
    let NextReport::Wait(Some(wait)) = sandbox.take() else {
        panic!("{number}: something is due at once");
    };
    let wait_ms = i64::try_from(wait.as_millis()).unwrap();
    now.store(START_MS + wait_ms - 1, Ordering::Relaxed);
    assert!(matches!(sandbox.take(), NextReport::Wait(_)), "{number}: not before");
    now.store(START_MS + wait_ms, Ordering::Relaxed);
    let NextReport::Report(mut report) = sandbox.take() else {
        panic!("{number}: nothing comes");
    };
    assert!(matches!(sandbox.take(), NextReport::Wait(None)), "{number}");
    let receipt = report.receipts.remove(0);
    (wait_ms, receipt.status, receipt.error)
}

#[test]
fn receipts_come_as_the_number_says() {
    for (number, after_ms, status, error) in [
        ("57000001", DELAY_MS, MessageStatus::Delivered, None),
        ("00000001", DELAY_MS, MessageStatus::Delivered, None),
        ("00000002", DELAY_MS, MessageStatus::Failed, Some("handset_unavailable")),
        ("00000003", DELAY_MS, MessageStatus::Expired, Some("validity_expired")),
        ("00000005", 30_000, MessageStatus::Delivered, None),
        // Only local numbers are reserved.
        ("+00000002", DELAY_MS, MessageStatus::Delivered, None),
    ] {
        let expected = (after_ms, status, error.map(str::to_owned));
        assert_eq!(receipt(number), expected, "{number}");
    }
}

/// Returns the answer to a message to this number, under a lease that ends at `not_after`.
async fn outcome(number: &str, not_after: Instant) -> SubmitOutcome {
    let sandbox = Sandbox::new(Clock::system(), 0);
    let expires_at = Timestamp::from_unix_ms(START_MS);
    let message = Claimed {
        id: Transid(1),
        application_id: ApplicationId(1),
        reference: None,
        test: true,
        number: Number::parse(number).unwrap(),
        address: "26600000004".to_owned(),
        sender: "Heliograph".to_owned(),
        message: MessageText::parse("Hello".to_owned(), 1).unwrap(),
        code: None,
        submitted_segments: Vec::new(),
        expires_at,
    };
    let lease = Lease {
        token: 1,
        shard: domain::ids::Shard::FIRST,
        until: expires_at,
        not_after: not_after.into_std(),
    };
    sandbox.submit(lease, vec![message]);
    let mut report = sandbox.report().await.unwrap();
    report.submitted.remove(0).outcomes.remove(0).1
}

#[tokio::test]
async fn one_reserved_number_is_refused() {
    for (number, refused) in [("00000004", true), ("+00000004", false), ("00000005", false)] {
        let outcome = outcome(number, Instant::now() + LONG).await;
        let seen = matches!(outcome, SubmitOutcome::Refused { .. });
        assert_eq!(seen, refused, "{number}: {outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_message_is_taken_after_the_lease_ended() {
    let now = Instant::now();
    tokio::time::advance(Duration::from_millis(1)).await;
    for number in ["57000001", "00000004"] {
        assert_eq!(outcome(number, now).await, SubmitOutcome::NotSent);
    }
}
