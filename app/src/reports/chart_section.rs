//! The section with the chart on the reports page.

use domain::KeyKind;
use leptos::prelude::*;

use super::bars::Bars;
use super::chart::{By, Chart};
use super::delivery_times::{delivery_times, usual_times};
use super::grouped;
use super::periods::{DAYS_MAX, Length};
use crate::reports::ReportFilter;
use crate::time_zone::ShownZone;
use crate::ui::tabs;

/// Renders the chart and its table, or a sentence that says why there is no chart.
#[component]
pub fn ChartSection(chart: Chart, filter: ReportFilter, currency: String) -> impl IntoView {
    let (periods, length) = (chart.periods, chart.periods.length);
    let (first, last) = (length.date(periods.first), length.date(periods.last));
    let whose = match filter.application.as_str() {
        "" => "All applications".to_owned(),
        reference => format!("Application {reference}"),
    };
    let what = match (chart.by, chart.key) {
        (By::Cost, KeyKind::Live) => "amounts paid for live messages of any status",
        (By::Cost, KeyKind::Test) => "test balance used by test messages of any status",
        (By::DeliveryTime, KeyKind::Live) => "live messages that were delivered",
        (By::DeliveryTime, KeyKind::Test) => "test messages that were delivered",
        (_, KeyKind::Live) => "live messages",
        (_, KeyKind::Test) => "test messages",
    };
    let by = chart.by;
    let choices = choices(&filter, by);
    let rate = chart.delivered.and_then(delivery_rate);
    let times = chart.times.as_ref().and_then(usual_times);
    let title = match (by, length) {
        (By::DeliveryTime, _) => "Delivery times",
        (By::Cost, Length::Day) => "Cost by day",
        (By::Cost, Length::Hour) => "Cost by hour",
        (By::Status | By::Application, Length::Day) => "Messages by day",
        (By::Status | By::Application, Length::Hour) => "Messages by hour",
    };
    let sent = match by {
        By::DeliveryTime => String::new(),
        By::Status | By::Application | By::Cost => format!(" by {} sent", length.word()),
    };
    let tests = filter.key.is_empty().then(|| {
        let href = filter.page_with(|filter| filter.key = KeyKind::Test.to_string());
        view! { " Test messages have a chart of their own: " <a href=href>"show them"</a> "." }
    });
    // Dates begin with the year, so the order of the texts is the order of the dates.
    let is_cut = !filter.from.is_empty() && filter.from < first;
    let cut = is_cut.then(|| format!(" A chart shows the last {DAYS_MAX} days at most."));
    let zone = ShownZone::read(|zone| zone.name().to_owned());
    let content = if by == By::DeliveryTime {
        delivery_times(&chart.times.unwrap_or_default())
    } else if !chart.is_counted {
        view! {
            <p>
                "Messages under way are counted by status and by day in UTC only, not by hour or \
                 by application. The list below shows each of them."
            </p>
        }
        .into_any()
    } else {
        Bars { chart, filter, currency }.view()
    };
    view! {
        <h2 id="days">{title}</h2>
        {choices}
        <p class="fine">
            {format!("{whose}, {what}{sent} ({zone}): ")} <span class="unbroken">{first}</span>
            " to " <span class="unbroken">{last}</span> "." {cut} {tests}
        </p>
        {rate.map(|rate| view! { <p>{rate}</p> })}
        {times.map(|times| view! { <p>{times}</p> })}
        {content}
    }
}

/// Renders links to the page with each kind of chart.
fn choices(filter: &ReportFilter, shown: By) -> impl IntoView + use<> {
    let links = By::ALL.map(|(by, word, name)| {
        let href = filter.page_with(|filter| word.clone_into(&mut filter.by));
        (href, name, by == shown)
    });
    tabs("Chart", links)
}

/// Formats the share of completed messages that were delivered, like "99.9 %". Returns `None` if
/// no message is completed.
pub fn rate((delivered, completed): (i64, i64)) -> Option<String> {
    let rate = delivered.saturating_mul(1000).checked_div(completed)?;
    Some(format!("{}.{} %", rate / 10, rate % 10))
}

/// Returns a sentence with the share of completed messages that were delivered. Returns `None` if
/// no message is completed.
fn delivery_rate((delivered, completed): (i64, i64)) -> Option<String> {
    let rate = rate((delivered, completed))?;
    Some(format!(
        "Delivery rate: {rate}. {} of {} delivered.",
        grouped(delivered),
        match completed {
            1 => "1 completed message was".to_owned(),
            _ => format!("{} completed messages were", grouped(completed)),
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::delivery_rate;

    #[test]
    fn the_delivery_rate_is_of_completed_messages() {
        assert_eq!(delivery_rate((0, 0)), None);
        let one = "Delivery rate: 100.0 %. 1 of 1 completed message was delivered.";
        assert_eq!(delivery_rate((1, 1)).unwrap(), one);
        assert_eq!(
            delivery_rate((1999, 2000)).unwrap(),
            "Delivery rate: 99.9 %. 1,999 of 2,000 completed messages were delivered."
        );
    }
}
