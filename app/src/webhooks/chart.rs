//! The deliveries and failures of an endpoint by day.

use domain::timestamp::DAY_MS;
use domain::webhook::AttemptCounts;
use domain::{Timestamp, quarter::QUARTER_MS};
use leptos::prelude::*;

use crate::reports::{OutcomeBar, OutcomeChart, counted, grouped};
use crate::time_zone::ShownZone;
use crate::ui::in_zone;

/// Renders the chart and its table, or a sentence if there was no attempt. `counts` are in
/// chronological order. `days` and `most` limit which attempts are counted.
pub fn attempts_chart(
    counts: &[AttemptCounts],
    now: Timestamp,
    (days, most): (i64, i64),
) -> AnyView {
    if counts.is_empty() {
        let sentence = format!("There were no attempts in the last {days} days.");
        return view! { <p class="empty">{sentence}</p> }.into_any();
    }
    let bars = by_day(counts, now, days);
    let failed: i64 = bars.iter().map(|bar| bar.bad).sum();
    let total = failed + bars.iter().map(|bar| bar.good).sum::<i64>();
    let (all, failed) = (counted(total, "attempt"), grouped(failed));
    let cut = (total >= most).then(|| {
        let sentence = format!("Only the newest {} attempts are counted.", grouped(most));
        view! { <p class="fine">{sentence}</p> }
    });
    let chart = OutcomeChart {
        id: "attempts",
        title: format!("{all}, of which {failed} failed; the table has the figures by day"),
        heading: in_zone("Day (UTC)"),
        words: ("Delivered", "Failed"),
        bars: &bars,
    };
    view! {
        {chart.view()}
        {cut}
    }
    .into_any()
}

/// Sums the counts by day in the page's time zone. Has all the last days, even without attempts.
fn by_day(counts: &[AttemptCounts], now: Timestamp, days: i64) -> Vec<OutcomeBar> {
    ShownZone::read(|zone| {
        let last = zone.day(now);
        let name = |day| Timestamp::from_unix_ms(day * DAY_MS).to_date();
        let empty = |day| OutcomeBar { name: name(day), good: 0, bad: 0 };
        let mut found: Vec<_> = (last - days..=last).map(empty).collect();
        for count in counts {
            let day = zone.day(Timestamp::from_unix_ms(count.quarter * QUARTER_MS));
            let place = usize::try_from(day - (last - days)).ok();
            if let Some(bar) = place.and_then(|place| found.get_mut(place)) {
                bar.good += count.delivered;
                bar.bad += count.failed;
            }
        }
        found
    })
}
