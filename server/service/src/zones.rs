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
mod tests;
