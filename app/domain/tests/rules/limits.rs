//! Limits: their texts, and what they refuse.

use domain::limits::{DEFAULT_LIMITS, LimitsChange, RecentMessages};
use domain::quiet_hours::QuietHours;
use domain::{Guard, Leak, LimitField, Money, Number, Reason, SendLimits};

fn set(limits: &[(LimitField, &str)]) -> SendLimits {
    let mut change = LimitsChange::default();
    for (field, text) in limits {
        change.add(*field, text).unwrap();
    }
    change.applied_to(&DEFAULT_LIMITS)
}

#[test]
fn each_limit_has_texts_that_are_valid_and_texts_that_are_not() {
    use LimitField as F;
    for (field, valid, invalid) in [
        (F::International, &["allowed", "off", ""][..], &["on", "0"][..]),
        (F::Prefixes, &["27", "+27, 49 ,1", "", "27\n49"], &["x", "1234567890123456", "+"]),
        (F::PerRecipientHour, &["1", "1000000", ""], &["0", "1000001", "-1", "+5", "1.5"]),
        (F::PerRecipientDay, &["7"], &["seven"]),
        (F::SpendPerDay, &["0.000001", "12.5", ""], &["0", "-1", "0.0000001", "1e3"]),
        (F::Addresses, &["192.0.2.7", "2001:db8::/32, ::1", ""], &["example.org", "1.2.3.4/33"]),
        (F::RefuseDoubtful, &["1", "true", "0", "false", ""], &["yes"]),
        (
            F::QuietHours,
            &["21:00-08:00", "00:00-23:59", " 08:00 - 21:00 ", ""],
            &[
                "21-8",
                "8:00-21:00",
                "21:00",
                "21:00-21:00",
                "20:00-24:00",
                "21:60-08:00",
                "é1:0-08:00",
            ],
        ),
        (F::TrafficPumping, &["off", "alarm", "block"], &["", "on"]),
        (F::TrafficPumpingMessages, &["50", ""], &["0"]),
        (F::LeakedKey, &["off", "alarm", "block"], &["", "on"]),
    ] {
        for text in valid {
            let limits = set(&[(field, text)]);
            // A shown text can be set again.
            assert_eq!(set(&[(field, &limits.text(field))]), limits, "{field} {text}");
        }
        for text in invalid {
            let refused = LimitsChange::default().add(field, text).unwrap_err();
            assert_eq!(refused.field, field, "{text}");
        }
    }
    let many = vec!["27"; 101].join(",");
    // Repeated prefixes count once.
    assert_eq!(set(&[(F::Prefixes, &many)]).text(F::Prefixes), "27");
    let many: Vec<String> = (100..201).map(|prefix| prefix.to_string()).collect();
    LimitsChange::default().add(F::Prefixes, &many.join(",")).unwrap_err();
}

#[test]
fn stored_limits_of_an_older_release_have_the_defaults() {
    let limits: SendLimits = serde_json::from_str(r#"{"per_recipient_hour": 3}"#).unwrap();
    assert_eq!(limits, set(&[(LimitField::PerRecipientHour, "3")]));
    let limits = SendLimits { quiet_hours: QuietHours::parse("21:00-08:00"), ..limits };
    let text = serde_json::to_string(&limits).unwrap();
    assert!(text.contains(r#""quiet_hours":{"from":"21:00","to":"08:00"}"#), "{text}");
    assert_eq!(serde_json::from_str::<SendLimits>(&text).unwrap(), limits);
    assert_eq!((limits.leaked_key, limits.traffic_pumping), (Guard::Alarm, Guard::Alarm));
}

#[test]
fn numbers_are_refused_as_they_are_written() {
    let refused = |limits: &SendLimits, number: &str| {
        limits.refuse_number(&Number::parse(number).unwrap(), "266")
    };
    let off = set(&[(LimitField::International, "off")]);
    let listed = set(&[(LimitField::Prefixes, "27,491")]);
    let doubtful = set(&[(LimitField::RefuseDoubtful, "1")]);
    let disabled = Some(Reason::InternationalDisabled);
    for (number, by_off, by_listed, by_doubtful) in [
        ("57000001", None, None, None),
        ("+57000001", disabled, disabled, None),
        ("2782123456789", disabled, None, None),
        ("4915112345678", disabled, None, None),
        ("4930123456", disabled, disabled, None),
        ("26657000001", disabled, disabled, Some(Reason::DoubtfulNumber)),
        ("0027821234567", disabled, disabled, Some(Reason::DoubtfulNumber)),
        ("271234567", disabled, None, Some(Reason::DoubtfulNumber)),
    ] {
        assert_eq!(refused(&DEFAULT_LIMITS, number), None, "{number}");
        assert_eq!(refused(&off, number), by_off, "{number}");
        assert_eq!(refused(&listed, number), by_listed, "{number}");
        assert_eq!(refused(&doubtful, number), by_doubtful, "{number}");
    }
}

#[test]
fn limits_admit_what_is_at_their_edge() {
    let limits = set(&[(LimitField::PerRecipientHour, "2"), (LimitField::SpendPerDay, "1")]);
    let recent = |hour, day| RecentMessages { hour, day };
    assert!(limits.admits_recipient(recent(1, 100)));
    assert!(!limits.admits_recipient(recent(2, 2)));
    let by_day = set(&[(LimitField::PerRecipientDay, "2")]);
    assert!(by_day.admits_recipient(recent(1, 1)));
    assert!(!by_day.admits_recipient(recent(0, 2)));
    assert!(DEFAULT_LIMITS.admits_recipient(recent(1_000_000, 1_000_000)));
    let micros = Money::from_micros;
    assert!(limits.admits_spend(micros(600_000), micros(400_000)));
    assert!(!limits.admits_spend(micros(600_000), micros(400_001)));
    assert!(!limits.admits_spend(micros(i64::MAX), micros(1)));
    assert!(DEFAULT_LIMITS.admits_spend(micros(i64::MAX), micros(1)));
}

#[test]
fn addresses_are_compared_with_all_ranges() {
    let limits = set(&[(LimitField::Addresses, "192.0.2.0/24, 2001:db8::1")]);
    for (address, admitted) in [
        (Some("192.0.2.200"), true),
        (Some("::ffff:192.0.2.200"), true),
        (Some("192.0.3.1"), false),
        (Some("2001:db8::1"), true),
        (Some("2001:db8::2"), false),
        (None, false),
    ] {
        let address = address.map(|text| text.parse().unwrap());
        assert_eq!(limits.admits_address(address), admitted, "{address:?}");
        assert!(DEFAULT_LIMITS.admits_address(address));
    }
}

#[test]
fn differences_name_only_what_changed() {
    let before = set(&[(LimitField::PerRecipientHour, "2")]);
    let mut after = set(&[(LimitField::SpendPerDay, "5"), (LimitField::PerRecipientHour, "2")]);
    assert_eq!(after.differences(&before), "spend_per_day 5.00");
    assert_eq!(before.differences(&after), "spend_per_day none");
    after.changed_by_api = true;
    assert_eq!(after.differences(&before), "spend_per_day 5.00, changes by API allowed");
    let replaced = LimitsChange::of_characters(true).applied_to(&after);
    assert_eq!(replaced.differences(&after), "characters outside GSM-7 replaced");
    assert_eq!(after.differences(&replaced), "characters outside GSM-7 unchanged");
    assert_eq!(after.differences(&after), "");
}

#[test]
fn only_what_no_server_does_is_a_leak() {
    use domain::leak::LeakSigns;
    let none = LeakSigns::default();
    for (signs, leak) in [
        (LeakSigns { user_agent: Some("curl/8.5.0"), ..none }, None),
        (LeakSigns { referer: Some(""), forwarded_proto: Some("https"), ..none }, None),
        (LeakSigns { fetch_mode: Some("cors"), ..none }, None),
        (LeakSigns { fetch_mode: Some("navigate"), ..none }, Some(Leak::Browser)),
        (LeakSigns { referer: Some("https://example.org/"), ..none }, Some(Leak::Browser)),
        (LeakSigns { user_agent: Some("WhatsApp/2.23"), ..none }, Some(Leak::LinkPreview)),
        (LeakSigns { forwarded_proto: Some("http"), ..none }, Some(Leak::PlainHttp)),
    ] {
        assert_eq!(Leak::find(signs), leak, "{signs:?}");
    }
}
