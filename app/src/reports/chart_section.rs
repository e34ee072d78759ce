//! The chart's part of the reports page.

use domain::KeyKind;
use domain::records::StatusCounts;
use leptos::prelude::*;

use super::bars::Bars;
use super::chart::{By, Chart};
use super::{counted, days, grouped};
use crate::reports::ReportFilter;

/// The chart and its table, or a sentence that there are no messages.
#[component]
pub fn ChartSection(chart: Chart, filter: ReportFilter, currency: String) -> impl IntoView {
    let (first, last) = (days::name(chart.first_day), days::name(chart.last_day));
    let whose = match filter.application.as_str() {
        "" => "All applications".to_owned(),
        reference => format!("Application {reference}"),
    };
    let what = match (chart.by, chart.key) {
        (By::Cost, _) => "what was paid for live messages of any status",
        (_, KeyKind::Live) => "live messages",
        (_, KeyKind::Test) => "test messages",
    };
    let choices = choices(&filter, chart.by);
    let rate = chart.counts.as_ref().and_then(delivery_rate);
    let late = (chart.by == By::Cost).then(|| {
        let words = "The cost of a day is counted once the day is over.";
        view! { <p class="fine">{words}</p> }
    });
    let bars = Bars {
        chart,
        filter,
        currency,
    };
    view! {
        <h2 id="days">"Messages by day"</h2>
        {choices}
        <p class="fine">
            {format!("{whose}, {what} by day sent (UTC): ")} <span class="unbroken">{first}</span>
            " to " <span class="unbroken">{last}</span> "."
        </p>
        {rate.map(|rate| view! { <p>{rate}</p> })}
        {late}
        {bars.view()}
    }
}

/// Links to the page with each kind of chart.
fn choices(filter: &ReportFilter, shown: By) -> impl IntoView + use<> {
    let links = By::ALL.map(|(by, word, name)| {
        let href = filter.page_with(|filter| word.clone_into(&mut filter.by));
        let current = (by == shown).then_some("true");
        view! {
            <li>
                <a href=href aria-current=current>
                    {name}
                </a>
            </li>
        }
    });
    view! {
        <nav class="tabs" aria-label="Chart">
            <ul>{Vec::from(links)}</ul>
        </nav>
    }
}

/// How many of the completed messages were delivered; `None` before any is completed.
fn delivery_rate(counts: &StatusCounts) -> Option<String> {
    let rate = counts.delivered_per_mille()?;
    Some(format!(
        "Delivery rate: {}.{} %. {} of {} were delivered.",
        rate / 10,
        rate % 10,
        grouped(counts.delivered),
        counted(counts.completed(), "completed message"),
    ))
}

#[cfg(test)]
mod tests {
    use domain::records::StatusCounts;

    use super::delivery_rate;

    #[test]
    fn the_delivery_rate_is_of_completed_messages() {
        let mut counts = StatusCounts {
            queued: 7,
            ..StatusCounts::default()
        };
        assert_eq!(delivery_rate(&counts), None);
        counts.delivered = 1999;
        counts.failed = 1;
        assert_eq!(
            delivery_rate(&counts).unwrap(),
            "Delivery rate: 99.9 %. 1,999 of 2,000 completed messages were delivered."
        );
    }
}
