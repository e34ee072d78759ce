//! Timestamps: parsing and formatting RFC 3339.

use domain::timestamp::DAY_MS;
use domain::{Month, Timestamp};
use proptest::prelude::*;

use crate::seeded;

/// 0001-01-01T00:00:00.000Z and 9999-12-31T23:59:59.999Z.
const FIRST_MS: i64 = -62_135_596_800_000;
const LAST_MS: i64 = 253_402_300_799_999;

#[test]
fn timestamps_are_read_and_shown() {
    let cases = [
        ("1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00.000Z"),
        ("1970-01-01T00:00:00.001Z", 1, "1970-01-01T00:00:00.001Z"),
        ("1969-12-31T23:59:59.999Z", -1, "1969-12-31T23:59:59.999Z"),
        ("2026-11-21T05:04:31.123Z", 1_795_237_471_123, "2026-11-21T05:04:31.123Z"),
        ("2026-11-21t05:04:31.123z", 1_795_237_471_123, "2026-11-21T05:04:31.123Z"),
        ("2026-11-21T07:04:31.123+02:00", 1_795_237_471_123, "2026-11-21T05:04:31.123Z"),
        ("2026-11-20T23:34:31.123-05:30", 1_795_237_471_123, "2026-11-21T05:04:31.123Z"),
        // Digits beyond milliseconds are rounded down.
        ("2026-11-21T05:04:31.123999999Z", 1_795_237_471_123, "2026-11-21T05:04:31.123Z"),
        ("1969-12-31T23:59:59.9999Z", -1, "1969-12-31T23:59:59.999Z"),
        ("2024-02-29T12:00:00Z", 1_709_208_000_000, "2024-02-29T12:00:00.000Z"),
        ("0001-01-01T00:00:00Z", FIRST_MS, "0001-01-01T00:00:00.000Z"),
        ("9999-12-31T23:59:59.999Z", LAST_MS, "9999-12-31T23:59:59.999Z"),
    ];
    for (text, ms, shown) in cases {
        let time = Timestamp::parse(text).unwrap_or_else(|| panic!("{text} was refused"));
        assert_eq!(time.unix_ms(), ms, "{text}");
        assert_eq!(time.to_string(), shown, "{text}");
    }
}

#[test]
fn texts_that_are_no_timestamps_are_refused() {
    let cases = [
        "",
        "now",
        "0",
        "1795237471123",
        "2026-11-21",
        "2026-11-21T05:04Z",
        "2026-11-21T05:04:31",
        "2026-11-21 ",
        "2026-11-21T05:04:31.Z",
        "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-11-31T00:00:00Z",
        "2026-11-21T24:00:00Z",
        "2026-11-21T05:60:00Z",
        "2026-11-21T05:04:31+25:00",
        "26-11-21T05:04:31Z",
        "12026-11-21T05:04:31Z",
        "-2026-11-21T05:04:31Z",
        " 2026-11-21T05:04:31Z",
        "2026-11-21T05:04:31Z ",
        // A plus that a query turned into a space.
        "2026-11-21T05:04:31 02:00",
    ];
    for text in cases {
        assert_eq!(Timestamp::parse(text), None, "{text:?}");
    }
}

#[test]
fn tables_show_seconds_without_letters() {
    assert_eq!(Timestamp::from_unix_ms(1_795_237_471_123).to_table(), "2026-11-21 05:04:31");
}

#[test]
fn days_begin_at_midnight_in_utc() {
    for (ms, day) in
        [(0, 0), (DAY_MS - 1, 0), (DAY_MS, 1), (-1, -1), (-DAY_MS, -1), (-DAY_MS - 1, -2)]
    {
        assert_eq!(Timestamp::from_unix_ms(ms).day(), day, "{ms}");
    }
}

#[test]
fn arithmetic_stops_at_the_ends() {
    let last = Timestamp::from_unix_ms(i64::MAX);
    let first = Timestamp::from_unix_ms(i64::MIN);
    assert_eq!(last.plus_ms(1), last);
    assert_eq!(first.plus_ms(-1), first);
    assert_eq!(last.ms_since(first), i64::MAX);
    // Times that RFC 3339 can't express don't cause a panic.
    assert!(!last.to_string().is_empty());
    assert!(!first.to_table().is_empty());
}

proptest! {
    #![proptest_config(seeded(2_000))]

    #[test]
    fn a_shown_timestamp_is_read_back(ms in FIRST_MS..=LAST_MS) {
        let time = Timestamp::from_unix_ms(ms);
        let text = time.to_string();
        prop_assert_eq!(text.len(), 24);
        prop_assert_eq!(Timestamp::parse(&text), Some(time));
        prop_assert_eq!(time.to_table(), text[..19].replace('T', " "));
    }

    #[test]
    fn texts_sort_like_timestamps(a in FIRST_MS..=LAST_MS, b in FIRST_MS..=LAST_MS) {
        let (left, right) = (Timestamp::from_unix_ms(a), Timestamp::from_unix_ms(b));
        prop_assert_eq!(left.to_string().cmp(&right.to_string()), left.cmp(&right));
        prop_assert_eq!(left.cmp(&right), a.cmp(&b));
    }

    #[test]
    fn an_offset_moves_the_clock_and_not_the_time(
        ms in 0..LAST_MS - 2 * DAY_MS,
        hours in 0..=23_i64,
        minutes in 0..=59_i64,
        east in any::<bool>(),
    ) {
        let sign = if east { 1 } else { -1 };
        let offset_ms = sign * (hours * 60 + minutes) * 60_000;
        let wall = Timestamp::from_unix_ms(ms).plus_ms(offset_ms).to_string();
        let sign = if east { '+' } else { '-' };
        let text = format!("{}{sign}{hours:02}:{minutes:02}", &wall[..23]);
        prop_assert_eq!(Timestamp::parse(&text).map(Timestamp::unix_ms), Some(ms), "{}", text);
    }

    #[test]
    fn differences_add_up(ms in FIRST_MS..=LAST_MS, step in -DAY_MS * 400..DAY_MS * 400) {
        let time = Timestamp::from_unix_ms(ms);
        prop_assert_eq!(time.plus_ms(step).ms_since(time), step);
    }

    #[test]
    fn a_day_holds_its_milliseconds(ms in FIRST_MS..=LAST_MS) {
        let day = Timestamp::from_unix_ms(ms).day();
        prop_assert!((day * DAY_MS..(day + 1) * DAY_MS).contains(&ms));
    }

    #[test]
    fn no_text_makes_reading_panic(
        text in r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9:.+\-Zz]{0,24}|\PC{0,40}",
    ) {
        if let Some(time) = Timestamp::parse(&text) {
            prop_assert!(!time.to_string().is_empty());
        }
    }

    #[test]
    fn in_json_a_timestamp_is_its_milliseconds(ms in any::<i64>()) {
        let json = serde_json::to_string(&Timestamp::from_unix_ms(ms)).unwrap();
        prop_assert_eq!(json, ms.to_string());
    }
}

#[test]
fn timestamps_are_read_as_people_type_them() {
    for (text, time) in [
        ("2026-12-01", "2026-12-01T00:00:00.000Z"),
        ("2026-12-01 08:30", "2026-12-01T08:30:00.000Z"),
        (" 2026-12-01T08:30 ", "2026-12-01T08:30:00.000Z"),
        ("2026-12-01T08:30:00+02:00", "2026-12-01T06:30:00.000Z"),
    ] {
        let read = Timestamp::parse_typed(text).unwrap();
        assert_eq!(read.to_string(), time, "{text}");
    }
    for text in ["", "tomorrow", "2026-13-01", "01.12.2026", "2026-12-01 25:00", "äääää"] {
        assert_eq!(Timestamp::parse_typed(text), None, "{text}");
    }
}

#[test]
fn months_follow_each_other_over_the_years() {
    let month = Month::parse("2026-12").unwrap();
    assert_eq!(month.to_string(), "2026-12");
    assert_eq!(month.name(), "December 2026");
    assert_eq!(month.next().to_string(), "2027-01");
    assert_eq!(month.next().previous(), month);
    assert_eq!(month.start().to_string(), "2026-12-01T00:00:00.000Z");
    let last = month.next().start().plus_ms(-1);
    assert_eq!(Month::of(last), month);
    assert_eq!(Month::of(last.plus_ms(1)), month.next());
    for text in ["", "2026", "2026-13", "2026-00", "26-01", "2026-1", "1969-12", "９999-01"] {
        assert_eq!(Month::parse(text), None, "{text}");
    }
}
