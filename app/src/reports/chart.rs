//! Messages by day and status, drawn as SVG, and the same figures as a table.

use domain::records::{DayCounts, StatusCounts};
use domain::{MessageStatus, Reference};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use super::axis::{percent, top};
use super::{counted, days};
use crate::ui::Table;
#[cfg(feature = "ssr")]
use {
    crate::problem::Problem,
    service::{MessageFilter, Service},
};

/// The statuses from the foot of a bar to its top: a status is told by its place too, and not by
/// its colour alone.
const ORDER: [MessageStatus; 8] = [
    MessageStatus::Delivered,
    MessageStatus::Submitted,
    MessageStatus::Sending,
    MessageStatus::Queued,
    MessageStatus::Unknown,
    MessageStatus::Failed,
    MessageStatus::Expired,
    MessageStatus::Rejected,
];

/// Counts by day, ready to be drawn. Days are counted since 1970-01-01.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Chart {
    first_day: i64,
    last_day: i64,
    /// Without the days that have no messages.
    counts: Vec<DayCounts>,
    /// The status of the filters, if they name one.
    status: Option<MessageStatus>,
    reference: Option<Reference>,
}

#[cfg(feature = "ssr")]
impl Chart {
    /// The chart of the filters' days; `None` where the filters choose among the messages of a day,
    /// of which no counts are kept.
    ///
    /// # Errors
    /// When the application isn't the account's, or the service fails.
    pub async fn find(
        service: &Service,
        account_id: i64,
        reference: Option<Reference>,
        wanted: &MessageFilter,
    ) -> Result<Option<Self>, Problem> {
        if wanted.number.is_some()
            || wanted.requestid.is_some()
            || wanted.transid.is_some()
            || wanted.batchid.is_some()
        {
            return Ok(None);
        }
        let days = days::shown(wanted, service.clock().now().day());
        let (first_day, last_day) = (*days.start(), *days.end());
        let counts = service
            .account_days(account_id, reference, first_day, last_day)
            .await?;
        Ok(Some(Self {
            first_day,
            last_day,
            counts,
            status: wanted.status,
            reference,
        }))
    }
}

/// The chart and its table, or a sentence that there are no messages.
#[component]
pub fn ChartSection(chart: Chart) -> impl IntoView {
    let (first, last) = (days::name(chart.first_day), days::name(chart.last_day));
    let whose = match chart.reference {
        Some(reference) => format!("Application {reference}"),
        None => "All applications".to_owned(),
    };
    let bars = Bars::of(chart);
    let drawn = if bars.statuses.is_empty() {
        view! { <p class="empty">"No messages in these days."</p> }.into_any()
    } else {
        view! {
            <div class="chart">
                <figure>{bars.drawing()} {bars.dates()}</figure>
                {bars.totals()}
            </div>
            <details>
                <summary>"The chart as a table"</summary>
                {bars.table()}
            </details>
        }
        .into_any()
    };
    view! {
        <h2 id="days">"Messages by day"</h2>
        <p class="fine">
            {format!("{whose}, by the day of acceptance (UTC): ")}
            <span class="unbroken">{first}</span> " to " <span class="unbroken">{last}</span> "."
        </p>
        {drawn}
    }
}

/// The bars of the chart: one for each day, with a part for each status.
struct Bars {
    chart: Chart,
    /// The statuses that have messages in these days, in the order of the bars.
    statuses: Vec<MessageStatus>,
}

impl Bars {
    fn of(chart: Chart) -> Self {
        let statuses = ORDER
            .into_iter()
            .filter(|status| chart.status.is_none_or(|only| only == *status))
            .filter(|status| chart.counts.iter().any(|day| day.counts.get(*status) > 0))
            .collect();
        Self { chart, statuses }
    }

    fn total(&self, status: MessageStatus) -> i64 {
        let days = self.chart.counts.iter();
        days.map(|day| day.counts.get(status)).sum()
    }

    /// The SVG. All its lengths are percentages, so that it fills any width without being
    /// stretched.
    fn drawing(&self) -> impl IntoView + use<> {
        let days = &self.chart.counts;
        let totals = days.iter().map(|day| sum(&self.statuses, &day.counts));
        let top = top(totals.max().unwrap_or_default());
        let messages: i64 = self.statuses.iter().map(|status| self.total(*status)).sum();
        let group = |(below, status): (usize, &MessageStatus)| {
            let days = days.iter().filter(|day| day.counts.get(*status) > 0);
            let bars: Vec<_> = days.map(|day| self.bar(day, below, top)).collect();
            view! { <g fill=format!("url(#fill-{})", status.as_str())>{bars}</g> }
        };
        let groups: Vec<_> = self.statuses.iter().enumerate().map(group).collect();
        let scale = [0, top / 2, top];
        let hints: Vec<_> = days.iter().map(|day| self.hint(day)).collect();
        view! {
            <svg class="chart-bars" role="img" aria-labelledby="chart-title">
                <title id="chart-title">
                    {format!(
                        "{} by day and status; the table has the figures",
                        counted(messages, "message"),
                    )}
                </title>
                <defs>{self.statuses.iter().map(|status| fill(*status)).collect_view()}</defs>
                {Vec::from(scale.map(|count| line(count, top)))} {groups}
                {Vec::from(scale.map(|count| label(count, top)))} {hints}
            </svg>
        }
    }

    /// A day's place among the days, and how many days there are.
    fn place(&self, day: i64) -> (i64, i64) {
        (
            day - self.chart.first_day,
            self.chart.last_day - self.chart.first_day + 1,
        )
    }

    /// A status' part of a day's bar. `below` is how many statuses are drawn below it.
    fn bar(&self, day: &DayCounts, below: usize, top: i64) -> impl IntoView + use<> {
        let foot = sum(&self.statuses[..below], &day.counts);
        let head = sum(&self.statuses[..=below], &day.counts);
        let (at, days) = self.place(day.day);
        view! {
            <rect
                // A fifth of a day's width is left free.
                x=percent(10 * at + 1, 10 * days)
                width=percent(8, 10 * days)
                y=percent(top - head, top)
                height=percent(head - foot, top)
            ></rect>
        }
    }

    /// A day's figures, shown where the pointer rests on the day.
    fn hint(&self, day: &DayCounts) -> impl IntoView + use<> {
        let (at, days) = self.place(day.day);
        let counts = self.statuses.iter().rev().filter_map(|status| {
            let count = day.counts.get(*status);
            (count > 0).then(|| format!("{count} {}", status.as_str()))
        });
        let words: Vec<_> = std::iter::once(days::name(day.day)).chain(counts).collect();
        view! {
            <rect class="chart-day" x=percent(at, days) width=percent(1, days) height="100%">
                <title>{words.join("\n")}</title>
            </rect>
        }
    }

    /// The first, the middle and the last day.
    fn dates(&self) -> impl IntoView + use<> {
        let (first, last) = (self.chart.first_day, self.chart.last_day);
        let mut shown = vec![first, i64::midpoint(first, last), last];
        shown.dedup();
        let shown: Vec<_> = shown
            .into_iter()
            .map(|day| view! { <span>{days::name(day)}</span> })
            .collect();
        view! {
            <div class="chart-dates" aria-hidden="true">
                {shown}
            </div>
        }
    }

    /// The key of the fills, with the number of messages of each status.
    fn totals(&self) -> AnyView {
        // From the top of a bar to its foot.
        let statuses: Vec<_> = self.statuses.iter().rev().copied().collect();
        Table::narrow(&statuses)
            .column("Status", |status| swatch(*status))
            .amount("Messages", |status| self.total(*status))
            .view()
    }

    /// The chart's figures, the newest day first.
    fn table(&self) -> AnyView {
        let days: Vec<_> = self.chart.counts.iter().rev().copied().collect();
        let mut table =
            Table::narrow(&days).styled("figures", "Day (UTC)", |day| days::name(day.day));
        for status in &self.statuses {
            table = table.amount(status.as_str(), |day| day.counts.get(*status));
        }
        table
            .amount("Together", |day| sum(&self.statuses, &day.counts))
            .in_region("Messages by day and status")
    }
}

/// How many messages have one of the statuses.
fn sum(statuses: &[MessageStatus], counts: &StatusCounts) -> i64 {
    statuses.iter().map(|status| counts.get(*status)).sum()
}

/// A status in the key: a sample of its fill, and its word.
fn swatch(status: MessageStatus) -> impl IntoView {
    let word = status.as_str();
    view! {
        <svg class="swatch" aria-hidden="true">
            <rect width="100%" height="100%" fill=format!("url(#fill-{word})")></rect>
        </svg>
        {word}
    }
}

/// A line of the scale, behind the bars.
fn line(count: i64, top: i64) -> impl IntoView {
    let y = percent(top - count, top);
    view! { <line x1="0" x2="100%" y1=y.clone() y2=y></line> }
}

/// The count that a line of the scale stands for, in front of the bars.
fn label(count: i64, top: i64) -> impl IntoView {
    let y = percent(top - count, top);
    (count > 0).then(|| view! { <text y=y dy="1em">{count.to_string()}</text> })
}

/// The fill of a status: a colour and a pattern of its own. The style sheet has the colours.
fn fill(status: MessageStatus) -> impl IntoView {
    let (ink, turn, stripe) = match status {
        MessageStatus::Delivered => ("ink-good", 0, 6),
        MessageStatus::Submitted => ("ink-moving", 45, 4),
        MessageStatus::Sending => ("ink-moving", 45, 2),
        MessageStatus::Queued => ("ink-waiting", 0, 1),
        MessageStatus::Unknown => ("ink-waiting", 0, 4),
        MessageStatus::Failed => ("ink-bad", -45, 4),
        MessageStatus::Expired => ("ink-bad", -45, 2),
        MessageStatus::Rejected => ("ink-bad", 90, 3),
    };
    view! {
        <pattern
            id=format!("fill-{}", status.as_str())
            class=ink
            width="6"
            height="6"
            patternUnits="userSpaceOnUse"
            patternTransform=format!("rotate({turn})")
        >
            <rect class="wash" width="6" height="6"></rect>
            <rect width=stripe.to_string() height="6"></rect>
        </pattern>
    }
}
