use domain::Timestamp;

use domain::quiet_hours::QuietHours;

use super::{names, quiet_end, zone};

fn at(text: &str) -> Timestamp {
    Timestamp::parse_typed(text).unwrap()
}

fn shown(name: &str, time: &str) -> String {
    let zone = zone(name, at("2026-11-23")).unwrap();
    let time = at(time);
    format!("{} {}", zone.to_table(time), zone.short_name(time))
}

#[test]
fn zones_have_the_offsets_of_the_database() {
    for (name, time, expected) in [
        ("Europe/Berlin", "2020-01-01", "2020-01-01 01:00:00 CET"),
        ("Europe/Berlin", "2026-03-29 00:59", "2026-03-29 01:59:00 CET"),
        ("Europe/Berlin", "2026-03-29 01:00", "2026-03-29 03:00:00 CEST"),
        ("Europe/Berlin", "2028-07-01", "2028-07-01 02:00:00 CEST"),
        ("Asia/Kathmandu", "2026-11-23", "2026-11-23 05:45:00 UTC+5:45"),
        ("America/Sao_Paulo", "2026-11-23", "2026-11-22 21:00:00 UTC-3"),
        ("America/St_Johns", "2026-11-23", "2026-11-22 20:30:00 NST"),
        ("Pacific/Apia", "2021-04-03 13:59", "2021-04-04 03:59:00 UTC+14"),
        ("Pacific/Apia", "2021-04-03 14:00", "2021-04-04 03:00:00 UTC+13"),
        ("Africa/Abidjan", "2026-11-23", "2026-11-23 00:00:00 GMT"),
        // A former name.
        ("Asia/Calcutta", "2026-11-23", "2026-11-23 05:30:00 IST"),
    ] {
        assert_eq!(shown(name, time), expected, "{name}");
    }
}

#[test]
fn quiet_hours_end_by_local_clocks() {
    for (name, hours, time, end) in [
        (None, "21:00-08:00", "2026-11-23 20:59", None),
        (None, "21:00-08:00", "2026-11-23 21:00", Some("2026-11-24 08:00")),
        (None, "21:00-08:00", "2026-11-24 07:59", Some("2026-11-24 08:00")),
        (None, "21:00-08:00", "2026-11-24 08:00", None),
        (None, "12:30-13:00", "2026-11-24 12:29", None),
        (None, "12:30-13:00", "2026-11-24 12:30", Some("2026-11-24 13:00")),
        (Some("Africa/Maseru"), "21:00-08:00", "2026-11-23 19:00", Some("2026-11-24 06:00")),
        (Some("Asia/Kathmandu"), "21:00-08:00", "2026-11-23 15:15", Some("2026-11-24 02:15")),
        (Some("no zone"), "21:00-08:00", "2026-11-23 21:00", Some("2026-11-24 08:00")),
        // On 2026-03-29, Berlin's clocks go from 02:00 to 03:00 at 01:00 UTC.
        (Some("Europe/Berlin"), "22:00-08:00", "2026-03-28 21:00", Some("2026-03-29 06:00")),
        (Some("Europe/Berlin"), "22:00-02:30", "2026-03-28 21:00", Some("2026-03-29 01:00")),
        (Some("Europe/Berlin"), "22:00-02:00", "2026-03-28 21:00", Some("2026-03-29 01:00")),
        (Some("Europe/Berlin"), "22:00-03:30", "2026-03-28 21:00", Some("2026-03-29 01:30")),
        (Some("Europe/Berlin"), "02:00-03:00", "2026-03-29 00:59", None),
        (Some("Europe/Berlin"), "02:00-03:00", "2026-03-29 01:00", None),
        // On 2026-10-25, they go from 03:00 to 02:00 at 01:00 UTC.
        (Some("Europe/Berlin"), "22:00-08:00", "2026-10-24 20:00", Some("2026-10-25 07:00")),
        (Some("Europe/Berlin"), "22:00-02:30", "2026-10-24 20:00", Some("2026-10-25 00:30")),
        (Some("Europe/Berlin"), "22:00-02:30", "2026-10-25 00:40", None),
        (Some("Europe/Berlin"), "22:00-02:30", "2026-10-25 01:00", Some("2026-10-25 01:30")),
        (Some("Europe/Berlin"), "22:00-03:00", "2026-10-25 00:40", Some("2026-10-25 02:00")),
        (Some("Europe/Berlin"), "02:45-06:00", "2026-10-25 00:50", Some("2026-10-25 01:00")),
    ] {
        let quiet = QuietHours::parse(hours).unwrap();
        let found = quiet_end(name, quiet, at(time));
        assert_eq!(found, end.map(at), "{name:?} {hours} {time}");
    }
}

#[test]
fn utc_has_many_names_and_other_texts_are_no_zones() {
    let now = at("2026-11-23");
    for name in ["UTC", "Etc/UTC", "Zulu"] {
        assert!(zone(name, now).unwrap().is_utc(), "{name}");
    }
    for name in ["", "Europe/Nowhere", "+01:00", "../UTC", "Etc/Unknown"] {
        assert_eq!(zone(name, now), None, "{name}");
    }
}

#[test]
fn each_zone_can_be_chosen_by_one_name() {
    let names: Vec<_> = names().collect();
    assert!(names.is_sorted() && names.len() > 300, "{}", names.len());
    for name in ["Africa/Nairobi", "Asia/Kolkata", "Europe/Berlin", "UTC"] {
        assert!(names.contains(&name), "{name}");
    }
    for name in ["Asia/Calcutta", "Etc/UTC", "US/Eastern", "GMT"] {
        assert!(!names.contains(&name), "{name}");
    }
    let now = at("2026-11-23");
    assert!(names.iter().all(|name| zone(name, now).is_some()));
}
