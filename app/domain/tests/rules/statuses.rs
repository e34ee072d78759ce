//! Statuses of messages.

use domain::MessageStatus;
use proptest::prelude::*;

use crate::seeded;
use MessageStatus::{
    Cancelled, Delivered, Expired, Failed, Queued, Rejected, Scheduled, Sending, Submitted, Unknown,
};

#[test]
fn the_words_are_those_of_the_contract() {
    let words = [
        (Scheduled, "scheduled"),
        (Queued, "queued"),
        (Sending, "sending"),
        (Unknown, "unknown"),
        (Submitted, "submitted"),
        (Delivered, "delivered"),
        (Failed, "failed"),
        (Expired, "expired"),
        (Rejected, "rejected"),
        (Cancelled, "cancelled"),
    ];
    assert_eq!(words.map(|(status, _)| status), MessageStatus::ALL);
    for (status, word) in words {
        assert_eq!(status.as_str(), word);
        assert_eq!(status.to_string(), word);
        assert_eq!(MessageStatus::parse(word), Some(status));
        assert_eq!(serde_json::to_string(&status).unwrap(), format!("\"{word}\""));
        assert_eq!(serde_json::from_str::<MessageStatus>(&format!("\"{word}\"")).unwrap(), status);
    }
    let codes = MessageStatus::ALL.map(MessageStatus::code);
    assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    for status in MessageStatus::ALL {
        assert_eq!(MessageStatus::from_code(status.code()), Some(status));
        assert_eq!(status.is_final(), status >= Delivered);
    }
    for code in [-1, 10, i64::MAX] {
        assert_eq!(MessageStatus::from_code(code), None);
    }
    for word in ["", "Queued", "DELIVERED", "sent", " queued", "queued "] {
        assert_eq!(MessageStatus::parse(word), None, "{word:?}");
    }
}

#[test]
fn ranks_rise_from_scheduled_to_final() {
    let rising = [Scheduled, Queued, Sending, Unknown, Submitted];
    assert!(rising.windows(2).all(|pair| pair[0].rank() < pair[1].rank()));
    for last in [Delivered, Failed, Expired, Rejected, Cancelled] {
        assert!(Submitted.rank() < last.rank(), "{last}");
        assert_eq!(last.rank(), Delivered.rank(), "{last}");
    }
}

#[test]
fn five_statuses_are_final() {
    for status in MessageStatus::ALL {
        assert_eq!(
            status.is_final(),
            [Delivered, Failed, Expired, Rejected, Cancelled].contains(&status),
            "{status}"
        );
    }
}

/// All 100 transitions: `+` if a stored status (row) may become the next one (column).
#[test]
fn every_step_is_allowed_or_refused_as_the_table_says() {
    #[rustfmt::skip]
    let table = [
        //            S Q S U S D F E R C
        (Scheduled, ". + + + + + + + + +"),
        (Queued,    ". . + + + + + + + +"),
        (Sending,   ". . . + + + + + + +"),
        (Unknown,   ". . . . + + + + + +"),
        (Submitted, ". . . . . + + + + +"),
        (Delivered, ". . . . . . . . . ."),
        (Failed,    ". . . . . . . . . ."),
        (Expired,   ". . . . . . . . . ."),
        (Rejected,  ". . . . . . . . . ."),
        (Cancelled, ". . . . . . . . . ."),
    ];
    for (from, row) in table {
        for (mark, to) in row.split(' ').zip(MessageStatus::ALL) {
            assert_eq!(from.may_become(to), mark == "+", "{from} to {to}");
        }
    }
}

proptest! {
    #![proptest_config(seeded(2_000))]

    /// Statuses may arrive in any order. The stored rank never decreases, and a final status stays.
    #[test]
    fn no_history_lowers_the_rank_or_leaves_a_final_status(
        wishes in prop::collection::vec(prop::sample::select(MessageStatus::ALL.to_vec()), 0..20),
    ) {
        let mut stored = Scheduled;
        let mut final_one = None;
        for wish in wishes {
            let before = stored;
            if stored.may_become(wish) {
                stored = wish;
            }
            prop_assert!(stored.rank() >= before.rank());
            if let Some(settled) = final_one {
                prop_assert_eq!(stored, settled);
            }
            if stored.is_final() {
                final_one = Some(stored);
            }
        }
    }
}
