//! Time zones: the times that their clocks show, and the times at which their days begin.

use domain::{Timestamp, Zone};
use proptest::prelude::*;

use crate::seeded;

fn at(text: &str) -> Timestamp {
    Timestamp::parse_typed(text).unwrap()
}

/// Returns the number of a day.
fn day(date: &str) -> i64 {
    at(date).day()
}

/// Creates a zone from offsets, each with the time at which it begins.
fn zone(name: &str, offsets: &[(&str, i32, &str)]) -> Zone {
    let offsets = offsets.iter();
    let offsets = offsets.map(|(from, minutes, short)| (at(from), *minutes, (*short).to_owned()));
    Zone::new(name.to_owned(), offsets.collect())
}

fn berlin() -> Zone {
    zone(
        "Europe/Berlin",
        &[
            ("2025-10-26 01:00", 60, "CET"),
            ("2026-03-29 01:00", 120, "CEST"),
            ("2026-10-25 01:00", 60, "CET"),
        ],
    )
}

fn kathmandu() -> Zone {
    zone("Asia/Kathmandu", &[("2020-01-01", 345, "UTC+5:45")])
}

/// Its clocks went back from 24:00 to 23:00, and forward from 00:00 to 01:00.
fn sao_paulo() -> Zone {
    zone(
        "America/Sao_Paulo",
        &[
            ("2018-02-18 02:00", -180, "UTC-3"),
            ("2018-11-04 03:00", -120, "UTC-2"),
            ("2019-02-17 02:00", -180, "UTC-3"),
        ],
    )
}

/// This zone skipped 2011-12-30. Its clocks change at 3:00 and at 4:00.
fn apia() -> Zone {
    zone(
        "Pacific/Apia",
        &[
            ("2011-09-24 14:00", -600, "UTC-10"),
            ("2011-12-30 10:00", 840, "UTC+14"),
            ("2012-03-31 14:00", 780, "UTC+13"),
        ],
    )
}

#[test]
fn clocks_show_the_time_of_their_zone() {
    for (zone, time, shown, short, minutes) in [
        (Zone::default(), "2026-11-23 13:05", "2026-11-23 13:05:00", "UTC", 0),
        (berlin(), "2026-03-29 00:59", "2026-03-29 01:59:00", "CET", 60),
        (berlin(), "2026-03-29 01:00", "2026-03-29 03:00:00", "CEST", 120),
        (berlin(), "2026-10-25 00:59", "2026-10-25 02:59:00", "CEST", 120),
        (berlin(), "2026-10-25 01:00", "2026-10-25 02:00:00", "CET", 60),
        // Before the first offset, and after the last one begins.
        (berlin(), "2020-07-01 12:00", "2020-07-01 13:00:00", "CET", 60),
        (berlin(), "2030-07-01 12:00", "2030-07-01 13:00:00", "CET", 60),
        (kathmandu(), "2026-11-23 18:20", "2026-11-24 00:05:00", "UTC+5:45", 345),
        (sao_paulo(), "2019-02-17 01:59", "2019-02-16 23:59:00", "UTC-2", -120),
        (sao_paulo(), "2019-02-17 02:00", "2019-02-16 23:00:00", "UTC-3", -180),
        (apia(), "2011-12-30 09:59", "2011-12-29 23:59:00", "UTC-10", -600),
        (apia(), "2011-12-30 10:00", "2011-12-31 00:00:00", "UTC+14", 840),
    ] {
        let time = at(time);
        assert_eq!(zone.to_table(time), shown);
        assert_eq!(zone.short_name(time), short, "{shown}");
        assert_eq!(zone.offset_minutes(time), minutes, "{shown}");
        assert_eq!(zone.day(time), day(&shown[..10]), "{shown}");
    }
}

#[test]
fn days_begin_at_midnight_or_where_clocks_skip_it() {
    for (zone, date, begins, hours) in [
        (Zone::default(), "2026-03-29", "2026-03-29 00:00", 24),
        (berlin(), "2026-03-28", "2026-03-27 23:00", 24),
        (berlin(), "2026-03-29", "2026-03-28 23:00", 23),
        (berlin(), "2026-03-30", "2026-03-29 22:00", 24),
        (berlin(), "2026-10-25", "2026-10-24 22:00", 25),
        (berlin(), "2026-10-26", "2026-10-25 23:00", 24),
        (kathmandu(), "2026-11-24", "2026-11-23 18:15", 24),
        // Midnight doesn't exist.
        (sao_paulo(), "2018-11-04", "2018-11-04 03:00", 23),
        // Midnight comes an hour late.
        (sao_paulo(), "2019-02-16", "2019-02-16 02:00", 25),
        (sao_paulo(), "2019-02-17", "2019-02-17 03:00", 24),
        // The day doesn't exist.
        (apia(), "2011-12-29", "2011-12-29 10:00", 24),
        (apia(), "2011-12-30", "2011-12-30 10:00", 0),
        (apia(), "2011-12-31", "2011-12-30 10:00", 24),
        (apia(), "2012-04-01", "2012-03-31 10:00", 25),
    ] {
        let start = zone.start_of_day(day(date));
        assert_eq!(start, at(begins), "{} {date}", zone.name());
        let next = zone.start_of_day(day(date) + 1);
        assert_eq!(next.ms_since(start), hours * 3_600_000, "{} {date}", zone.name());
    }
}

#[test]
fn only_utc_has_no_offsets() {
    assert!(Zone::default().is_utc());
    assert!(!berlin().is_utc());
    assert_eq!(zone("Etc/UTC", &[]), Zone::default());
    assert_eq!(Zone::default().name(), "UTC");
    assert_eq!(berlin().name(), "Europe/Berlin");
}

proptest! {
    #![proptest_config(seeded(512))]

    /// Every time is within the day that the zone's clocks show.
    #[test]
    fn a_day_lasts_until_the_next_begins(ms in 1_300_000_000_000_i64..1_900_000_000_000) {
        let time = Timestamp::from_unix_ms(ms);
        for zone in [Zone::default(), berlin(), kathmandu(), sao_paulo(), apia()] {
            let day = zone.day(time);
            prop_assert!(zone.start_of_day(day) <= time, "{}", zone.name());
            prop_assert!(time < zone.start_of_day(day + 1), "{}", zone.name());
        }
    }
}

#[test]
fn hours_are_those_that_the_clocks_show() {
    let hour = |zone: &Zone, date, hour| {
        let (begin, end) = zone.hour(day(date), hour);
        (begin.to_table(), end.to_table())
    };
    let expected = |begin: &str, end: &str| (format!("{begin}:00"), format!("{end}:00"));
    let berlin = berlin();
    assert_eq!(hour(&berlin, "2026-11-23", 7), expected("2026-11-23 06:00", "2026-11-23 07:00"));
    // The clocks show the first hour twice and skip the second one.
    assert_eq!(hour(&berlin, "2026-10-25", 2), expected("2026-10-25 00:00", "2026-10-25 02:00"));
    assert_eq!(hour(&berlin, "2026-03-29", 2), expected("2026-03-29 01:00", "2026-03-29 01:00"));
    assert_eq!(
        hour(&kathmandu(), "2026-11-23", 23),
        expected("2026-11-23 17:15", "2026-11-23 18:15")
    );
    assert_eq!(
        hour(&Zone::default(), "2026-11-23", 0),
        expected("2026-11-23 00:00", "2026-11-23 01:00")
    );
}

#[test]
fn a_range_is_divided_where_clocks_are_changed() {
    let parts = |zone: &Zone, from, below| {
        let parts = zone.parts(at(from), at(below)).into_iter();
        parts.map(|(from, below, minutes)| format!("{from} {below} {minutes}")).collect::<Vec<_>>()
    };
    assert_eq!(
        parts(&berlin(), "2026-03-01", "2026-11-01"),
        [
            "2026-03-01T00:00:00.000Z 2026-03-29T01:00:00.000Z 60",
            "2026-03-29T01:00:00.000Z 2026-10-25T01:00:00.000Z 120",
            "2026-10-25T01:00:00.000Z 2026-11-01T00:00:00.000Z 60",
        ]
    );
    assert_eq!(
        parts(&berlin(), "2026-03-29 01:00", "2026-03-30"),
        ["2026-03-29T01:00:00.000Z 2026-03-30T00:00:00.000Z 120"]
    );
    assert_eq!(
        parts(&Zone::default(), "2026-03-29", "2026-03-30"),
        ["2026-03-29T00:00:00.000Z 2026-03-30T00:00:00.000Z 0"]
    );
    assert!(parts(&berlin(), "2026-03-30", "2026-03-30").is_empty());
}

#[test]
fn a_local_time_is_found_although_clocks_change() {
    let berlin = berlin();
    for (local, expected) in [
        ("2026-11-23 08:30", "2026-11-23 07:30"),
        ("2026-07-01 08:30", "2026-07-01 06:30"),
        // The clocks show this time twice.
        ("2026-10-25 02:30", "2026-10-25 00:30"),
    ] {
        assert_eq!(berlin.time_of(at(local)), at(expected), "{local}");
    }
    // The clocks skip this time.
    let skipped = berlin.time_of(at("2026-03-29 02:30"));
    assert!(skipped.ms_since(at("2026-03-29 01:00")).abs() <= 3_600_000, "{skipped}");
    assert_eq!(kathmandu().time_of(at("2026-11-23 05:45")), at("2026-11-23"));
    assert_eq!(Zone::default().time_of(at("2026-11-23 05:45")), at("2026-11-23 05:45"));
}
