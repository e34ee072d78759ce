//! The header `Retry-After` of an answer.

use std::time::{Duration, SystemTime};

/// Reads `Retry-After` in either form (RFC 9110, section 10.2.3). A date in the past means now, and
/// a number that doesn't fit means the longest time.
pub fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        // Thu, 25 Feb 2021 15:02:10 GMT
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_614_265_330);
        let cases = [
            ("0", Some(0)),
            ("120", Some(120)),
            (" 7 ", Some(7)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("Thu, 25 Feb 2021 15:03:10 GMT", Some(60)),
            ("Thursday, 25-Feb-21 15:03:10 GMT", Some(60)),
            ("Thu Feb 25 15:03:10 2021", Some(60)),
            ("Thu, 25 Feb 2021 15:02:10 GMT", Some(0)),
            ("Thu, 25 Feb 2021 15:02:09 GMT", Some(0)),
            ("", None),
            ("-1", None),
            ("+1", None),
            ("1.5", None),
            ("1e3", None),
            ("soon", None),
            ("Thu, 25 Feb 2021 25:03:10 GMT", None),
            ("Thu, 25 Feb 2021 15:03:10 CET", None),
        ];
        for (text, expected) in cases {
            assert_eq!(retry_after(text, now), expected.map(Duration::from_secs), "{text:?}");
        }
    }
}
