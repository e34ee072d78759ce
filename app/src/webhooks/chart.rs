//! The deliveries and failures of an endpoint by day.

use domain::timestamp::DAY_MS;
use domain::webhook::AttemptCounts;
use domain::{Timestamp, quarter::QUARTER_MS};
use leptos::prelude::*;

use crate::reports::{Fill, counted, grouped, percent, top};
use crate::time_zone::ShownZone;
use crate::ui::{Table, in_zone};

const DELIVERED: &str = "fill-attempts-delivered";
const FAILED: &str = "fill-attempts-failed";

/// The attempts of a day.
#[derive(Clone, Copy, Default)]
struct DayBar {
    /// Counted since 1970-01-01, in the page's time zone.
    day: i64,
    delivered: i64,
    failed: i64,
}

impl DayBar {
    const fn total(self) -> i64 {
        self.delivered + self.failed
    }

    fn name(self) -> String {
        Timestamp::from_unix_ms(self.day * DAY_MS).to_date()
    }
}

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
    let days = by_day(counts, now, days);
    let total: i64 = days.iter().map(|day| day.total()).sum();
    let failed: i64 = days.iter().map(|day| day.failed).sum();
    let title = format!("{}, of which {} failed", counted(total, "attempt"), grouped(failed));
    let cut = (total >= most).then(|| {
        let sentence = format!("Only the newest {} attempts are counted.", grouped(most));
        view! { <p class="fine">{sentence}</p> }
    });
    let (first, last) = (days.first().map(|day| day.name()), days.last().map(|day| day.name()));
    view! {
        <div class="chart">
            <figure>
                {drawing(&days, format!("{title}; the table has the figures by day"))}
                <div class="chart-dates" aria-hidden="true"><span>{first}</span><span>{last}</span></div>
                {legend()}
            </figure>
            {table(&days)}
        </div>
        {cut}
    }
    .into_any()
}

/// Sums the counts by day in the page's time zone. Has all the last days, even without attempts.
fn by_day(counts: &[AttemptCounts], now: Timestamp, days: i64) -> Vec<DayBar> {
    ShownZone::read(|zone| {
        let last = zone.day(now);
        let mut found: Vec<_> =
            (last - days..=last).map(|day| DayBar { day, ..DayBar::default() }).collect();
        for count in counts {
            let day = zone.day(Timestamp::from_unix_ms(count.quarter * QUARTER_MS));
            if let Some(day) = found.iter_mut().find(|it| it.day == day) {
                day.delivered += count.delivered;
                day.failed += count.failed;
            }
        }
        found
    })
}

fn drawing(days: &[DayBar], title: String) -> impl IntoView + use<> {
    let top = top(days.iter().map(|day| day.total()).max().unwrap_or_default());
    let count = i64::try_from(days.len()).unwrap_or(1);
    let bar = |at: usize, foot: i64, amount: i64| {
        let at = i64::try_from(at).unwrap_or_default();
        view! {
            <rect
                x=percent(10 * at + 1, 10 * count)
                width=percent(8, 10 * count)
                y=percent(top - foot - amount, top)
                height=percent(amount, top)
            ></rect>
        }
    };
    let bars = |amounts: fn(&DayBar) -> (i64, i64)| -> Vec<_> {
        let amounts = days.iter().map(amounts).enumerate();
        amounts.map(|(at, (foot, amount))| bar(at, foot, amount)).collect()
    };
    let y = |amount| percent(top - amount, top);
    let lines = [0, top / 2, top].map(|amount| {
        view! { <line x1="0" x2="100%" y1=y(amount) y2=y(amount)></line> }
    });
    let labels = [top / 2, top].map(|amount| {
        view! { <text y=y(amount) dy="1em">{grouped(amount)}</text> }
    });
    view! {
        <svg class="chart-bars" role="img" aria-label=title>
            <defs>
                {Fill::of_outcome(true).pattern(DELIVERED.to_owned())}
                {Fill::of_outcome(false).pattern(FAILED.to_owned())}
            </defs>
            {Vec::from(lines)}
            <g fill=format!("url(#{DELIVERED})")>{bars(|day| (0, day.delivered))}</g>
            <g fill=format!("url(#{FAILED})")>{bars(|day| (day.delivered, day.failed))}</g>
            {Vec::from(labels)}
        </svg>
    }
}

fn legend() -> impl IntoView {
    let entries = [(DELIVERED, "Delivered"), (FAILED, "Failed")].map(|(fill, word)| {
        view! {
            <span class="unbroken">
                <svg class="swatch" aria-hidden="true">
                    <rect width="100%" height="100%" fill=format!("url(#{fill})")></rect>
                </svg>
                {word}
            </span>
        }
    });
    view! { <p class="fine legend">{Vec::from(entries)}</p> }
}

fn table(days: &[DayBar]) -> AnyView {
    let newest_first: Vec<_> = days.iter().rev().copied().collect();
    Table::narrow(&newest_first)
        .styled("figures", in_zone("Day (UTC)"), |day| day.name())
        .amount("Delivered", |day| grouped(day.delivered))
        .amount("Failed", |day| grouped(day.failed))
        .view()
}
