//! The days of a chart, and how a day is written.

use domain::Timestamp;
use domain::timestamp::DAY_MS;
#[cfg(feature = "ssr")]
use {service::MessageFilter, std::ops::RangeInclusive};

/// How many days a chart shows when the filters name none.
#[cfg(feature = "ssr")]
const DAYS: i64 = 30;
/// The most days that a chart shows: on a narrow screen a day is still 3 pixels wide.
#[cfg(feature = "ssr")]
const DAYS_MAX: i64 = 92;

/// The days that a chart shows, counted since 1970-01-01: those of the filter, or the last of them
/// when they are too many.
#[cfg(feature = "ssr")]
pub fn shown(wanted: &MessageFilter, today: i64) -> RangeInclusive<i64> {
    let last = wanted.to.map_or(today, |end| end.plus_ms(-1).day());
    let first = match wanted.from {
        Some(from) => from.day().max(last - DAYS_MAX + 1),
        None => last - DAYS + 1,
    };
    first..=last
}

/// A day's date, for example `2026-11-21`.
pub fn name(day: i64) -> String {
    let text = Timestamp::from_unix_ms(day * DAY_MS).to_string();
    text.split('T').next().unwrap_or(&text).to_owned()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use domain::Timestamp;
    use domain::timestamp::DAY_MS;
    use service::MessageFilter;

    use super::{name, shown};

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
        for (from, last, expected) in [
            (None, None, TODAY - 29..=TODAY),
            (None, Some(19_000), 18_971..=19_000),
            (Some(19_990), None, 19_990..=TODAY),
            (Some(19_000), Some(19_000), 19_000..=19_000),
            (Some(10_000), Some(19_000), 18_909..=19_000),
        ] {
            let days = shown(&filter(from, last), TODAY);
            assert_eq!(days, expected, "{from:?} {last:?}");
        }
        assert!(shown(&filter(Some(19_001), Some(19_000)), TODAY).is_empty());
    }

    #[test]
    fn a_day_is_named_by_its_date() {
        assert_eq!(name(0), "1970-01-01");
        assert_eq!(name(19_782), "2024-02-29");
    }
}
