//! Support hours: their texts, and how much of them is between two times.

use domain::support_hours::SupportHours;
use domain::{Timestamp, Zone};

fn at(text: &str) -> Timestamp {
    Timestamp::parse_typed(text).unwrap()
}

#[test]
fn only_support_hours_count() {
    // 2026-11-27 is a Friday. The zone is two hours ahead of UTC, and one hour from December on.
    let offset = |from: &str, minutes: i32| (at(from), minutes, "X".to_owned());
    let offsets = vec![offset("2020-01-01", 120), offset("2026-12-01 00:00", 60)];
    let zone = Zone::new("X/Y".to_owned(), offsets);
    let weekdays = SupportHours::parse("Mon-Fri 08:00-17:00 X/Y").unwrap();
    assert_eq!((weekdays.zone(), weekdays.day_ms()), ("X/Y", 9 * 3_600_000));
    for (from, to, minutes) in [
        // Within a day, around it, and outside it.
        ("2026-11-27 07:00", "2026-11-27 07:30", 30),
        ("2026-11-27 00:00", "2026-11-27 23:59", 540),
        ("2026-11-27 15:00", "2026-11-27 23:00", 0),
        // From Friday, half an hour before the end, to Monday, an hour after the beginning.
        ("2026-11-27 14:30", "2026-11-30 07:00", 90),
        ("2026-11-28 00:00", "2026-11-29 23:00", 0),
        // Clocks went back in the night.
        ("2026-11-30 14:00", "2026-12-01 08:00", 120),
        // Two whole weeks.
        ("2026-11-14 00:00", "2026-11-28 00:00", 10 * 540),
    ] {
        let found = weekdays.ms_between(&zone, at(from), at(to));
        assert_eq!(found, minutes * 60_000, "{from} {to}");
    }
}

#[test]
fn days_are_single_days_and_ranges() {
    let day = |days: &str, date: &str| {
        let hours = SupportHours::parse(&format!("{days} 00:00-23:00 UTC")).unwrap();
        let (from, to) = (at(date), at(date).plus_ms(86_400_000));
        hours.ms_between(&Zone::default(), from, to) > 0
    };
    // From Monday to Sunday.
    let week = ["23", "24", "25", "26", "27", "28", "29"].map(|day| format!("2026-11-{day}"));
    for (days, expected) in [
        ("Mon-Fri", "yyyyynn"),
        ("Sun-Thu", "yyyynny"),
        ("Sat", "nnnnnyn"),
        ("Mon-Wed,Fri", "yyynynn"),
        ("Mon-Mon", "ynnnnnn"),
    ] {
        let found: String =
            week.iter().map(|date| if day(days, date) { 'y' } else { 'n' }).collect();
        assert_eq!(found, expected, "{days}");
    }
    for bad in [
        "",
        "Mon-Fri",
        "Mon-Fri 08:00-17:00",
        "Mon-Fri 17:00-08:00 UTC",
        "Mon-Fri 08:00-08:00 UTC",
        "Mon-Fri 8-17 UTC",
        "mon-fri 08:00-17:00 UTC",
        "Mon- 08:00-17:00 UTC",
        "Mon-Fri 08:00-17:00 UTC x",
    ] {
        assert_eq!(SupportHours::parse(bad), None, "{bad:?}");
    }
}
