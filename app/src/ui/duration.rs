//! Durations in words.

const MINUTE_MS: i64 = 60 * 1000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Returns a duration, rounded up to its largest unit: "3 hours".
pub fn within(ms: i64) -> String {
    let (unit, word) = if ms <= HOUR_MS {
        (MINUTE_MS, "minute")
    } else if ms <= DAY_MS {
        (HOUR_MS, "hour")
    } else {
        (DAY_MS, "day")
    };
    let count = ms.max(1).div_euclid(unit) + i64::from(ms.max(1).rem_euclid(unit) > 0);
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {word}{plural}")
}

/// Returns a sentence about how long staff usually take to answer.
pub fn answered_within(usual_ms: Option<i64>) -> String {
    match usual_ms {
        Some(ms) => format!("We usually answer within {}.", within(ms)),
        None => "We answer as soon as we can.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
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
            assert_eq!(within(ms), words);
        }
    }
}
