//! The scale of counts in charts, and bars on it.

use leptos::prelude::*;

/// Returns the end of a scale that begins at 0: a round number of at least `greatest`. The number
/// is even, so that half of it is a count too.
pub fn top(greatest: i64) -> i64 {
    let mut unit = 1_i64;
    loop {
        let round = [2, 4, 6, 8, 10, 12, 16].map(|digit| unit.saturating_mul(digit));
        if let Some(top) = round.into_iter().find(|top| *top >= greatest) {
            return top;
        }
        unit = unit.saturating_mul(10);
    }
}

/// Formats a share of a whole as SVG writes it, for example `12.50%`.
pub fn percent(part: i64, whole: i64) -> String {
    let hundredths = part.saturating_mul(10_000) / whole.max(1);
    format!("{}.{:02}%", hundredths / 100, hundredths % 100)
}

/// Draws a part of the bar at an index, of a number of bars. `foot` is the total of the parts below
/// it.
pub fn bar_part(
    (at, count): (i64, i64),
    foot: i64,
    amount: i64,
    top: i64,
) -> impl IntoView + use<> {
    view! {
        <rect
            // A fifth of a bar's width stays empty.
            x=percent(10 * at + 1, 10 * count)
            width=percent(8, 10 * count)
            y=percent(top - foot - amount, top)
            height=percent(amount, top)
        ></rect>
    }
}

#[cfg(test)]
mod tests {
    use super::{percent, top};

    #[test]
    fn a_scale_ends_at_a_round_even_count() {
        for (greatest, expected) in [
            (0, 2),
            (1, 2),
            (3, 4),
            (9, 10),
            (10, 10),
            (11, 12),
            (17, 20),
            (70, 80),
            (1_101, 1_200),
            (999_999, 1_000_000),
            (i64::MAX, i64::MAX),
        ] {
            assert_eq!(top(greatest), expected, "{greatest}");
        }
    }

    #[test]
    fn a_part_is_written_in_hundredths_of_a_percent() {
        assert_eq!(percent(1, 8), "12.50%");
        assert_eq!(percent(1, 3), "33.33%");
        assert_eq!(percent(5, 5), "100.00%");
        assert_eq!(percent(0, 0), "0.00%");
    }
}
