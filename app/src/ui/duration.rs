//! Durations in words.

use domain::support_hours::UsualTime;

const MINUTE_MS: i64 = 60 * 1000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Returns a duration, rounded up to its largest unit: "3 hours", or "3 working hours" if only
/// support hours count.
pub fn within(UsualTime { ms, working_day_ms }: UsualTime) -> String {
    let day_ms = working_day_ms.unwrap_or(DAY_MS);
    let (unit, word) = if ms <= HOUR_MS.min(day_ms) {
        (MINUTE_MS, "minute")
    } else if ms <= day_ms {
        (HOUR_MS, "hour")
    } else {
        (day_ms, "day")
    };
    let working = if working_day_ms.is_some() { "working " } else { "" };
    let count = ms.max(1).div_euclid(unit) + i64::from(ms.max(1).rem_euclid(unit) > 0);
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {working}{word}{plural}")
}

/// Returns a sentence about how long staff usually take to answer.
pub fn answered_within(usual: Option<UsualTime>) -> String {
    match usual {
        Some(usual) => format!("We usually answer within {}.", within(usual)),
        None => "We answer as soon as we can.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use domain::support_hours::UsualTime;

    use super::within;

    #[test]
    fn a_length_of_time_is_rounded_up_to_its_largest_unit() {
        for (ms, words) in [
            (0, "1 minute"),
            (60_000, "1 minute"),
            (60_001, "2 minutes"),
            (3_600_000, "60 minutes"),
            (3_600_001, "2 hours"),
            (86_400_001, "2 days"),
        ] {
            assert_eq!(within(UsualTime { ms, working_day_ms: None }), words);
        }
        for (ms, words) in [
            (0, "1 working minute"),
            (3_600_001, "2 working hours"),
            (32_400_000, "9 working hours"),
            (32_400_001, "2 working days"),
        ] {
            assert_eq!(within(UsualTime { ms, working_day_ms: Some(32_400_000) }), words);
        }
    }
}
