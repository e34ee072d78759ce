//! Applications: categories, statuses and sender names.

use domain::application::StatusAction;
use domain::records::ApplicationRecord;
use domain::sender_name::SENDER_NAME_CHARS_MAX;
use domain::{ApplicationName, ApplicationStatus, Category, SenderName, SenderStatus};
use proptest::prelude::*;

use crate::readiness::ready;
use crate::seeded;
use ApplicationStatus::{Active, Pending, Suspended};
use StatusAction::{Approve, Reinstate, Suspend};

#[test]
fn categories_have_their_words() {
    assert_eq!(Category::ALL.map(Category::as_str), ["SMS", "Electricity"]);
    for category in Category::ALL {
        let word = category.as_str();
        assert_eq!(Category::parse(word), Some(category));
        assert_eq!(category.to_string(), word);
        assert_eq!(serde_json::to_string(&category).unwrap(), format!("\"{word}\""));
        assert_eq!(serde_json::from_str::<Category>(&format!("\"{word}\"")).unwrap(), category);
    }
    for word in ["", "sms", "Sms", "electricity", "SMS ", "Water"] {
        assert_eq!(Category::parse(word), None, "{word:?}");
    }
}

#[test]
fn statuses_have_their_words() {
    assert_eq!(
        ApplicationStatus::ALL.map(ApplicationStatus::as_str),
        ["Pending", "Active", "Suspended"]
    );
    for status in ApplicationStatus::ALL {
        let word = status.as_str();
        assert_eq!(ApplicationStatus::parse(word), Some(status));
        assert_eq!(status.to_string(), word);
        assert_eq!(serde_json::to_string(&status).unwrap(), format!("\"{word}\""));
    }
    for word in ["", "pending", "ACTIVE", "suspended", "Active "] {
        assert_eq!(ApplicationStatus::parse(word), None, "{word:?}");
    }
}

/// Covers every status, every action, and every status before a suspension.
#[test]
fn every_action_leads_where_the_table_says() {
    for before in ApplicationStatus::ALL {
        let table = [
            (Pending, Approve, Some(Active)),
            (Pending, Suspend, Some(Suspended)),
            (Pending, Reinstate, None),
            (Active, Approve, None),
            (Active, Suspend, Some(Suspended)),
            (Active, Reinstate, None),
            (Suspended, Approve, None),
            (Suspended, Suspend, None),
            (Suspended, Reinstate, Some(before)),
        ];
        for (status, action, after) in table {
            assert_eq!(status.after(action, before), after, "{status} {action:?}");
        }
    }
}

#[test]
fn reinstating_brings_back_the_status_before_the_suspension() {
    for status in [Pending, Active] {
        let suspended = status.after(Suspend, status).unwrap();
        assert_eq!(suspended.after(Reinstate, status), Some(status));
    }
}

#[test]
fn sender_names_are_1_to_11_ascii_letters_and_digits() {
    for text in ["A", "7", "Heliograph", "ABCDEFGHIJK", "12345678901", "aB3"] {
        assert_eq!(SenderName::parse(text).unwrap().as_str(), text);
    }
    let cases = [
        "",
        " ",
        "ABCDEFGHIJKL",
        "My Shop",
        " Shop",
        "Shop ",
        "Shop-1",
        "Shop_1",
        "Shop.",
        "+266",
        "Caf\u{e9}",
        "\u{410}\u{411}\u{412}",
        "\u{ff21}",
        "\u{661}",
        "Shop\0",
        "Shop\n",
        "😀",
    ];
    for text in cases {
        assert!(SenderName::parse(text).is_err(), "{text:?} was taken for a sender name");
    }
    assert_eq!(SENDER_NAME_CHARS_MAX, 11);
}

#[test]
fn sender_statuses_have_their_words() {
    assert_eq!(
        SenderStatus::ALL.map(SenderStatus::as_str),
        ["pending", "accepted", "rejected", "replaced", "withdrawn"]
    );
    for status in SenderStatus::ALL {
        assert_eq!(SenderStatus::parse(status.as_str()), Some(status));
        assert_eq!(serde_json::to_string(&status).unwrap(), format!("\"{}\"", status.as_str()));
    }
    assert_eq!(SenderStatus::parse("Pending"), None);
}

proptest! {
    #![proptest_config(seeded(2_000))]

    #[test]
    fn a_sender_name_is_checked_character_by_character(
        text in r"[A-Za-z0-9]{0,13}|[A-Za-z0-9 _\-é]{0,12}|\PC{0,13}",
    ) {
        let length = text.chars().count();
        let expected = (1..=11).contains(&length)
            && text.chars().all(|c| matches!(c, 'A'..='Z' | 'a'..='z' | '0'..='9'));
        let parsed = SenderName::parse(&text);
        prop_assert_eq!(parsed.is_ok(), expected);
        if let Ok(name) = parsed {
            prop_assert_eq!(name.to_string(), text);
        }
    }

    #[test]
    fn names_that_differ_in_case_alone_are_one_name(
        text in "[A-Za-z0-9]{1,11}",
        flips in any::<u16>(),
    ) {
        let other: String = text
            .chars()
            .enumerate()
            .map(|(i, c)| {
                if flips >> i & 1 == 0 { c }
                else if c.is_ascii_lowercase() { c.to_ascii_uppercase() }
                else { c.to_ascii_lowercase() }
            })
            .collect();
        let (name, other) = (SenderName::parse(&text).unwrap(), SenderName::parse(&other).unwrap());
        prop_assert_eq!(name.folded(), other.folded());
    }

    #[test]
    fn no_history_of_actions_leaves_the_three_statuses(
        actions in prop::collection::vec(
            prop::sample::select(vec![Approve, Suspend, Reinstate]),
            0..30,
        ),
    ) {
        // The content of a row: the status, and the status before the suspension.
        let (mut status, mut before, mut approved) = (Pending, Pending, false);
        for action in actions {
            let Some(next) = status.after(action, before) else { continue };
            if action == Suspend {
                before = status;
            }
            approved |= action == Approve;
            status = next;
            // Only an approval makes an application Active for the first time.
            prop_assert!(status != Active || approved);
            prop_assert!(before != Suspended);
        }
    }
}

#[test]
fn a_display_name_is_one_short_line_and_the_default_is_the_sender_name() {
    let parsed = |text: &str| ApplicationName::parse(text).map(|name| name.map(|n| n.to_string()));
    assert_eq!(parsed("  Shop \u{1f6d2} ").unwrap().as_deref(), Some("Shop \u{1f6d2}"));
    assert_eq!(parsed(" \t").unwrap(), None);
    let most = "\u{1f6d2}".repeat(40);
    assert_eq!(parsed(&most).unwrap(), Some(most));
    for bad in ["\u{1f6d2}".repeat(200), "two\nlines".to_owned(), "a\u{202e}b".to_owned()] {
        assert!(parsed(&bad).is_err(), "{bad:?}");
    }

    let mut record = ready();
    assert_eq!(record.display_name(), "SMS application");
    record.sender_name = Some("Kiosk".to_owned());
    assert_eq!(record.display_name(), "Kiosk");
    let named = ApplicationRecord { name: Some("Shop".to_owned()), ..record };
    assert_eq!(named.display_name(), "Shop");
}
