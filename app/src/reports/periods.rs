//! The periods of a chart, which are days or hours, and their names.

use domain::Timestamp;
use domain::timestamp::DAY_MS;
use serde::{Deserialize, Serialize};
#[cfg(feature = "ssr")]
use {
    domain::Zone, domain::quarter::QuarterRange, service::MessageFilter, std::ops::RangeInclusive,
};

/// The number of days that a chart shows by default.
#[cfg(feature = "ssr")]
const DAYS: i64 = 30;
/// The most days that a chart shows. On a narrow screen a day is then still 3 pixels wide.
pub const DAYS_MAX: i64 = 92;
/// The most days that a chart shows by hour.
#[cfg(feature = "ssr")]
const DAYS_BY_HOUR: i64 = 2;

/// The length of a chart's periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Length {
    Day,
    Hour,
}

impl Length {
    /// Returns the noun for a period.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Hour => "hour",
        }
    }

    /// Returns the number of periods in a day.
    const fn of_day(self) -> i64 {
        match self {
            Self::Day => 1,
            Self::Hour => 24,
        }
    }

    /// Returns the date of a period. Periods are counted since 1970-01-01 00:00.
    pub fn date(self, period: i64) -> String {
        let day = period.div_euclid(self.of_day());
        Timestamp::from_unix_ms(day * DAY_MS).to_date()
    }

    /// Returns the hour of the day at which a period begins. Returns `None` if the period is a day.
    pub const fn hour(self, period: i64) -> Option<i64> {
        match self {
            Self::Day => None,
            Self::Hour => Some(period.rem_euclid(24)),
        }
    }

    /// Returns the name of a period: a date such as `2026-11-21`, or a date and an hour such as
    /// `2026-11-21 14:00`.
    pub fn name(self, period: i64) -> String {
        let date = self.date(period);
        match self.hour(period) {
            None => date,
            Some(hour) => format!("{date} {hour:02}:00"),
        }
    }
}

/// The periods of a chart, counted since 1970-01-01 00:00 in the page's time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Periods {
    pub length: Length,
    pub first: i64,
    pub last: i64,
}

#[cfg(feature = "ssr")]
impl Periods {
    /// Returns the periods that a chart shows: the days of the filters, or the last `DAYS_MAX` of
    /// them. Up to `DAYS_BY_HOUR` days are shown by hour.
    pub fn shown(wanted: &MessageFilter, zone: &Zone, today: i64) -> Self {
        let days = days(wanted, zone, today);
        let (first, last) = (*days.start(), *days.end());
        let is_short = (1..=DAYS_BY_HOUR).contains(&(last - first + 1));
        let length = if is_short { Length::Hour } else { Length::Day };
        Self { length, first: first * length.of_day(), last: (last + 1) * length.of_day() - 1 }
    }

    pub const fn of_days(first: i64, last: i64) -> Self {
        Self { length: Length::Day, first, last }
    }

    /// Returns the ranges of quarter hours that the figures of these periods are read from.
    pub fn quarters(self, zone: &Zone) -> Vec<QuarterRange> {
        let of_day = self.length.of_day();
        let day = |period: i64| zone.start_of_day(period.div_euclid(of_day));
        let parts = zone.parts(day(self.first), day(self.last + 1));
        let ranges = parts.into_iter().map(|(from, below, minutes)| QuarterRange {
            first: from.quarter(),
            below: below.quarter(),
            ahead: i64::from(minutes).div_euclid(15),
            length: 96 / of_day,
        });
        ranges.collect()
    }
}

#[cfg(feature = "ssr")]
fn days(wanted: &MessageFilter, zone: &Zone, today: i64) -> RangeInclusive<i64> {
    let last = wanted.to.map_or(today, |end| zone.day(end.plus_ms(-1)));
    let first = match wanted.from {
        Some(from) => zone.day(from).max(last - DAYS_MAX + 1),
        None => last - DAYS + 1,
    };
    first..=last
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use domain::quarter::QuarterRange;
    use domain::timestamp::DAY_MS;
    use domain::{Timestamp, Zone};
    use service::MessageFilter;

    use super::{Length, Periods};

    const TODAY: i64 = 20_000;

    fn filter(from: Option<i64>, last: Option<i64>) -> MessageFilter {
        let midnight = |day: i64| Timestamp::from_unix_ms(day * DAY_MS);
        MessageFilter {
            from: from.map(midnight),
            to: last.map(|day| midnight(day + 1)),
            ..MessageFilter::default()
        }
    }

    #[test]
    fn a_chart_has_thirty_days_or_the_last_of_those_asked_for() {
        for (from, last, first_shown, last_shown) in [
            (None, None, TODAY - 29, TODAY),
            (None, Some(19_000), 18_971, 19_000),
            (Some(19_990), None, 19_990, TODAY),
            (Some(10_000), Some(19_000), 18_909, 19_000),
        ] {
            let shown = Periods::shown(&filter(from, last), &Zone::default(), TODAY);
            let expected = (Length::Day, first_shown, last_shown);
            assert_eq!((shown.length, shown.first, shown.last), expected);
        }
        let none = Periods::shown(&filter(Some(19_001), Some(19_000)), &Zone::default(), TODAY);
        assert!(none.first > none.last);
    }

    #[test]
    fn one_day_or_two_are_shown_by_the_hour() {
        for (from, last, hours) in [(TODAY, TODAY, 24), (TODAY - 1, TODAY, 48)] {
            let utc = Zone::default();
            let shown = Periods::shown(&filter(Some(from), Some(last)), &utc, TODAY);
            let expected = (Length::Hour, from * 24, from * 24 + hours - 1);
            assert_eq!((shown.length, shown.first, shown.last), expected);
            let expected = QuarterRange {
                first: from * 96,
                below: from * 96 + hours * 4,
                ahead: 0,
                length: 4,
            };
            assert_eq!(shown.quarters(&utc), [expected]);
        }
    }

    #[test]
    fn periods_are_those_of_the_zone_also_where_its_clocks_are_changed() {
        // Two hours ahead of UTC until 01:00 UTC today, and one hour ahead from then on.
        let change = Timestamp::of_day(TODAY).plus_ms(3_600_000);
        let summer = (Timestamp::of_day(0), 120, "CEST".to_owned());
        let zone = Zone::new("Zone".to_owned(), vec![summer, (change, 60, "CET".to_owned())]);
        let day = MessageFilter {
            from: Some(zone.start_of_day(TODAY)),
            to: Some(zone.start_of_day(TODAY + 1)),
            ..MessageFilter::default()
        };
        let shown = Periods::shown(&day, &zone, TODAY);
        assert_eq!((shown.first, shown.last), (TODAY * 24, TODAY * 24 + 23));
        let [before, after] = shown.quarters(&zone).try_into().unwrap();
        assert_eq!((before.first, before.below), (TODAY * 96 - 8, TODAY * 96 + 4));
        assert_eq!((after.first, after.below), (TODAY * 96 + 4, TODAY * 96 + 92));
        assert_eq!((before.ahead, after.ahead), (8, 4));
    }

    #[test]
    fn a_period_is_named_by_its_date_and_hour() {
        assert_eq!(Length::Day.name(0), "1970-01-01");
        assert_eq!(Length::Day.name(19_782), "2024-02-29");
        assert_eq!(Length::Hour.name(19_782 * 24 + 7), "2024-02-29 07:00");
    }
}
