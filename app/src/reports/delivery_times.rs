//! Delivery times, as a sentence and as a table.

use domain::quarter::{DELIVERY_TIMES, DELIVERY_TIMES_MS, Figures};
use leptos::prelude::*;

use super::grouped;
use crate::ui::Table;

/// The number of messages for each range of delivery times, in the order of [`DELIVERY_TIMES_MS`].
type Times = [i64; DELIVERY_TIMES];

/// Returns a sentence that says how soon 50 % and 95 % of the delivered messages arrived. Returns
/// `None` if no message was delivered.
pub fn usual_times(times: &Times) -> Option<String> {
    let figures = Figures { delivered: *times, ..Figures::default() };
    let within = |percent| match figures.delivered_within_ms(percent)? {
        Some(ms) => Some(format!("within {}", words(ms))),
        None => Some(format!("after more than {}", words(LONGEST_MS))),
    };
    let (half, most) = (within(50)?, within(95)?);
    Some(format!("Time to delivery: half of the delivered messages arrived {half}, 95 % {most}."))
}

/// The longest limit. Messages that took longer are counted together.
const LONGEST_MS: i64 = DELIVERY_TIMES_MS[DELIVERY_TIMES_MS.len() - 1];

/// Renders the table of delivery times, or a sentence that says that there are none.
pub fn delivery_times(times: &Times) -> AnyView {
    let total: i64 = times.iter().sum();
    let mut sum = 0;
    let rows: Vec<_> = times
        .iter()
        .enumerate()
        .map(|(place, n)| {
            sum += n;
            (DELIVERY_TIMES_MS.get(place).copied(), *n, sum)
        })
        .filter(|(_, n, _)| *n > 0)
        .collect();
    if rows.is_empty() {
        let nothing = "No message was delivered in these days.";
        return view! { <p class="empty">{nothing}</p> }.into_any();
    }
    let share = move |n: i64| {
        let per_mille = (n.saturating_mul(2000) + total) / (2 * total.max(1));
        format!("{}.{} %", per_mille / 10, per_mille % 10)
    };
    Table::narrow(&rows)
        .column("Delivered within", |(limit, ..)| match limit {
            Some(ms) => words(*ms),
            None => format!("more than {}", words(LONGEST_MS)),
        })
        .styled("share", "Share", |(_, n, _)| {
            let (n, total) = (n.to_string(), total.to_string());
            view! { <meter value=n max=total aria-hidden="true"></meter> }
        })
        .amount("Messages", |(_, n, _)| grouped(*n))
        .amount("Of delivered", move |(_, n, _)| share(*n))
        .amount("Total", move |(.., sum)| share(*sum))
        .in_region("Delivery times")
}

/// Formats a limit of delivery times. Each limit is a whole number of one unit.
fn words(ms: i64) -> String {
    let (n, unit) = match ms {
        ..60_000 => (ms / 1_000, "second"),
        60_000..3_600_000 => (ms / 60_000, "minute"),
        _ => (ms / 3_600_000, "hour"),
    };
    super::counted(n, unit)
}

#[cfg(test)]
mod tests {
    use domain::quarter::{DELIVERY_TIMES, DELIVERY_TIMES_MS};

    use super::{usual_times, words};

    #[test]
    fn every_limit_is_a_whole_number_of_its_unit() {
        let all = DELIVERY_TIMES_MS.map(words);
        assert_eq!(all[0], "1 second");
        assert_eq!(all[7], "1 minute");
        assert_eq!(all[13], "24 hours");
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), DELIVERY_TIMES_MS.len());
    }

    #[test]
    fn usual_times_are_told_in_a_sentence() {
        let mut times = [0; DELIVERY_TIMES];
        assert_eq!(usual_times(&times), None);
        times[2] = 60;
        times[14] = 40;
        assert_eq!(
            usual_times(&times).unwrap(),
            "Time to delivery: half of the delivered messages arrived within 3 seconds, \
             95 % after more than 24 hours."
        );
    }
}
