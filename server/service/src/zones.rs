//! Time zones, from the time zone database in the program.

use std::sync::LazyLock;

use domain::quiet_hours::QuietHours;
use domain::timestamp::DAY_MS;
use domain::{Timestamp, Zone};
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};

use crate::Service;

static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
/// The current name of each zone, without the zone's former names.
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let names = DATABASE.available();
    let zones = names.filter_map(|name| DATABASE.get(name.as_str()).ok());
    let primary = zones.filter_map(|zone| Some(zone.primary_iana_name()?.to_owned()));
    let mut names: Vec<_> = primary
        .filter(|name| name.contains('/') && !name.starts_with("Etc/") || name == UTC)
        .collect();
    names.sort_unstable();
    names.dedup();
    // Frees the zones that the database has cached. Few of them will be used.
    DATABASE.reset();
    names
});

const UTC: &str = "UTC";
/// 2020-01-01, in Unix seconds. Pages show no earlier times.
const SHOWN_FROM_S: i64 = 1_577_836_800;
/// How far into the future pages show times, in milliseconds.
const AHEAD_MS: i64 = 2 * 366 * 24 * 60 * 60 * 1000;

/// Returns the names of the selectable zones in alphabetical order, such as `Europe/Berlin`.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(String::as_str)
}

impl Service {
    /// Returns the zone with this name, from 2020 until two years from now. Former names work too,
    /// because some browsers use them. Returns `None` if the database doesn't have the name.
    pub fn zone(&self, name: &str) -> Option<Zone> {
        zone(name, self.clock().now())
    }
}

/// Returns the day at a time in the calendar of the zone with this name, counted since 1970-01-01.
/// `None` and unknown names stand for UTC.
pub(crate) fn day(name: Option<&str>, now: Timestamp) -> i64 {
    local(&find(name), now).day()
}

/// Returns the end of the quiet hours that a time is in, by the clocks of the zone with this name.
/// The end is the first later time at which the clocks show a time outside the hours. If clocks
/// skip the time at which the hours end, they end when the clocks change. Returns `None` if the
/// time is outside the hours.
pub(crate) fn quiet_end(name: Option<&str>, hours: QuietHours, at: Timestamp) -> Option<Timestamp> {
    let zone = find(name);
    let mut end = at;
    while let Some(left) = hours.ms_left(local(&zone, end).unix_ms().rem_euclid(DAY_MS)) {
        let by_this_offset = end.plus_ms(left);
        // If the clocks change before that, the hours are checked again then.
        let change = next_change(&zone, end);
        end = change.map_or(by_this_offset, |change| change.min(by_this_offset));
    }
    (end > at).then_some(end)
}

/// Returns the zone with this name. `None` and unknown names stand for UTC.
fn find(name: Option<&str>) -> TimeZone {
    name.and_then(|name| DATABASE.get(name).ok()).unwrap_or(TimeZone::UTC)
}

/// Returns the time that a zone's clocks show, as if it were a time in UTC.
fn local(zone: &TimeZone, at: Timestamp) -> Timestamp {
    let offset = jiff::Timestamp::from_millisecond(at.unix_ms()).map(|at| zone.to_offset(at));
    at.plus_ms(offset.map_or(0, |offset| i64::from(offset.seconds()) * 1000))
}

/// Returns when a zone's clocks change next.
fn next_change(zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let from = jiff::Timestamp::from_millisecond(after.unix_ms()).ok()?;
    let changes = zone.following(from);
    let mut times = changes.map(|it| Timestamp::from_unix_ms(it.timestamp().as_millisecond()));
    times.find(|at| *at > after)
}

/// Returns the milliseconds until the next day begins in the zone with this name.
pub(crate) fn ms_until_tomorrow(name: Option<&str>, now: Timestamp) -> i64 {
    let zone = name.and_then(|name| zone(name, now)).unwrap_or_default();
    zone.start_of_day(zone.day(now) + 1).ms_since(now)
}

/// Returns the beginning of the current day in the zone with this name.
pub(crate) fn start_of_today(name: Option<&str>, now: Timestamp) -> Timestamp {
    let zone = name.and_then(|name| zone(name, now)).unwrap_or_default();
    zone.start_of_day(zone.day(now))
}

/// Like [`Service::zone`], at this time.
pub fn zone(name: &str, now: Timestamp) -> Option<Zone> {
    let zone = DATABASE.get(name).ok()?;
    let name = zone.iana_name()?.to_owned();
    let first = jiff::Timestamp::from_second(SHOWN_FROM_S).ok()?;
    let info = zone.to_offset_info(first);
    let mut offsets = vec![offset(first, info.offset(), info.abbreviation())];
    let last = now.plus_ms(AHEAD_MS).unix_ms();
    for change in zone.following(first) {
        if change.timestamp().as_millisecond() > last {
            break;
        }
        offsets.push(offset(change.timestamp(), change.offset(), change.abbreviation()));
    }
    // The database also has changes that concern neither the offset nor the short name.
    offsets.dedup_by(|later, earlier| later.1 == earlier.1 && later.2 == earlier.2);
    if offsets.iter().all(|(_, minutes, short)| *minutes == 0 && short == UTC) {
        offsets.clear();
    }
    Some(Zone::new(name, offsets))
}

/// Converts an offset to the form that pages use.
fn offset(from: jiff::Timestamp, offset: Offset, short: &str) -> domain::zone::Offset {
    let from = Timestamp::from_unix_ms(from.as_millisecond());
    let minutes = offset.seconds() / 60;
    (from, minutes, short_name(short, minutes))
}

/// Returns the short name of an offset. If there is no customary name, the database has digits like
/// `+0545`, which become `UTC+5:45`.
fn short_name(short: &str, minutes: i32) -> String {
    if !short.starts_with(['+', '-']) {
        return short.to_owned();
    }
    let sign = if minutes < 0 { '-' } else { '+' };
    let (hours, rest) = (minutes.abs() / 60, minutes.abs() % 60);
    match rest {
        0 => format!("UTC{sign}{hours}"),
        _ => format!("UTC{sign}{hours}:{rest:02}"),
    }
}

#[cfg(test)]
mod tests {
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
}
