//! Reports: the pages that show messages and batches.

mod axis;
mod bars;
mod batch;
mod batches;
mod chart;
mod chart_section;
mod columns;
mod delivery_times;
mod details;
mod explained;
mod filter;
mod filters;
mod list;
mod message;
mod messages;
mod outcomes;
mod patterns;
mod periods;
mod progress;
#[cfg(feature = "hydrate")]
mod refresh;
mod results;
mod stop;
mod text;
mod thread;
mod timeline;

pub use axis::{percent, top};
pub use bars::Bars;
pub use batch::BATCH_EVENTS_PATH;
pub use chart::Chart;
pub use chart_section::rate;
pub use details::ReportPage;
pub use explained::meaning;
#[cfg(feature = "ssr")]
pub use filter::given;
pub use filter::{CSV_PATH, REPORTS_PATH, ReportFilter};
pub use list::ReportsPage;
pub use message::{Charge, MessageFacts};
pub use messages::messages_section;
pub use outcomes::{OutcomeBar, OutcomeChart};
use patterns::Fill;
#[cfg(feature = "ssr")]
pub use periods::Periods;
pub use progress::progress as batch_progress;
#[cfg(feature = "ssr")]
pub use results::open_counts;
pub use results::{REPORT_EVENTS_PATH, is_under_way};
pub use text::{MessageText, count};
pub use timeline::Timeline;

use domain::Money;

pub fn counted(count: i64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{} {noun}s", grouped(count)) }
}

/// Formats a count with a comma between groups of three digits, for example `1,234,567`.
pub fn grouped(count: i64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        let left = digits.len() - place;
        if place > 0 && left.is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats an amount for a column of costs. Amounts of the test balance are marked.
fn price(amount: Money, test: bool) -> String {
    if test { format!("{} test", amount.shown()) } else { amount.shown() }
}

#[cfg(test)]
mod tests {
    use super::{counted, grouped};

    #[test]
    fn counts_are_grouped_by_three_digits() {
        for (count, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (-100, "-100"),
            (-1000, "-1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(count), text);
        }
        assert_eq!(counted(1, "page"), "1 page");
        assert_eq!(counted(2000, "page"), "2,000 pages");
    }
}
