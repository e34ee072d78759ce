//! Reads days as banks write them.

use domain::Timestamp;

/// Parses a day whose parts are numbers, with an optional time after it. Returns it like
/// `2026-11-27`, or `None` if the text isn't a day.
///
/// A year at the beginning has four digits, and one at the end may have two. `is_month_first` says
/// how to read a day with its year at the end.
pub(super) fn day(text: &str, is_month_first: bool) -> Option<String> {
    let text = text.trim().split([' ', 'T']).next()?;
    let parts: Vec<&str> = match text.find(['-', '/', '.']) {
        Some(at) => text.split(&text[at..=at]).collect(),
        None if text.len() == 8 && text.is_ascii() => vec![&text[..4], &text[4..6], &text[6..]],
        None => return None,
    };
    let [first, second, third] = parts[..] else { return None };
    let number = |text: &str| {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u16>().ok())?
    };
    let (year, month, day) = match (first.len(), third.len()) {
        (4, 1 | 2) => (number(first)?, second, third),
        (1 | 2, 2) if is_month_first => (2000 + number(third)?, first, second),
        (1 | 2, 2) => (2000 + number(third)?, second, first),
        (1 | 2, 4) if is_month_first => (number(third)?, first, second),
        (1 | 2, 4) => (number(third)?, second, first),
        _ => return None,
    };
    let day = format!("{year:04}-{:02}-{:02}", number(month)?, number(day)?);
    // Refuses days like 30 February.
    Timestamp::parse_typed(&day).map(|_| day)
}

#[cfg(test)]
mod tests {
    use super::day;

    #[test]
    fn days_are_read_as_banks_write_them() {
        for text in [
            "2026-11-05",
            "2026/11/5",
            "20261105",
            "05.11.2026",
            "5/11/26",
            "05-11-2026",
            " 05/11/2026 23:59",
            "2026-11-05T00:00:00+02:00",
        ] {
            assert_eq!(day(text, false).as_deref(), Some("2026-11-05"), "{text}");
        }
        assert_eq!(day("11/05/2026", true).as_deref(), Some("2026-11-05"));
        assert_eq!(day("2026-11-05", true).as_deref(), Some("2026-11-05"));
        for bad in [
            "",
            "x",
            "30.02.2026",
            "11/27/2026",
            "27.11.",
            "1.234.567",
            "12.50",
            "5 Nov 2026",
            "+5/11/2026",
            "2026110",
            "26-11-2026-1",
            "//",
            "5/11/126",
            "ééé-11-26",
        ] {
            assert_eq!(day(bad, false), None, "{bad}");
        }
    }
}
