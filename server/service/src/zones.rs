//! Time zones, from the time zone database in the program.

use std::sync::LazyLock;

use domain::{Timestamp, Zone};
use jiff::tz::{Offset, TimeZoneDatabase};

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
    let local = || {
        let zone = DATABASE.get(name?).ok()?;
        let at = jiff::Timestamp::from_millisecond(now.unix_ms()).ok()?;
        Some(now.plus_ms(i64::from(zone.to_offset(at).seconds()) * 1000))
    };
    local().unwrap_or(now).day()
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

    use super::{names, zone};

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
