//! Draws the chart as SVG, and shows the same figures as a table.

use leptos::prelude::*;

use super::axis::{bar_part, percent, top};
use super::chart::{By, Chart, Layer, Part, amount_in_words};
use super::counted;
use super::periods::Length;
use crate::reports::ReportFilter;
use crate::ui::{Table, in_zone};

/// The bars of a chart. Each period has a bar, and each layer is a part of every bar.
pub struct Bars {
    pub chart: Chart,
    /// The filters of the page that shows the chart.
    pub filter: ReportFilter,
    pub currency: String,
}

impl Bars {
    /// Returns the chart and its table, or a sentence that says that there is nothing to draw.
    pub fn view(&self) -> AnyView {
        if self.chart.layers.is_empty() {
            return view! { <p class="empty">"No messages in these days."</p> }.into_any();
        }
        view! {
            <div class="chart">
                {self.figure()}
                {self.totals()}
            </div>
            <details>
                <summary>"The chart as a table"</summary>
                {self.table()}
            </details>
        }
        .into_any()
    }

    /// Returns the chart alone.
    pub fn figure(&self) -> AnyView {
        view! { <figure>{self.drawing()} {self.dates()}</figure> }.into_any()
    }

    fn words(&self, amount: i64) -> String {
        amount_in_words(self.chart.by, amount)
    }

    /// Returns the periods that have an amount, in ascending order.
    fn periods(&self) -> Vec<i64> {
        let layers = self.chart.layers.iter();
        let mut periods: Vec<i64> =
            layers.flat_map(|layer| layer.periods.iter().map(|(period, _)| *period)).collect();
        periods.sort_unstable();
        periods.dedup();
        periods
    }

    /// Returns the SVG. All its lengths are percentages, so it fills any width without being
    /// stretched.
    ///
    /// The links of the periods are in a second SVG on top of the image. Screen readers ignore
    /// links in an image; they find the same links in the table.
    fn drawing(&self) -> impl IntoView + use<> {
        let (chart, periods) = (&self.chart, self.periods());
        let totals = periods.iter().map(|period| sum(&chart.layers, *period));
        let top = top(totals.max().unwrap_or_default());
        let groups: Vec<_> = (0..chart.layers.len()).map(|place| self.layer(place, top)).collect();
        let scale = [0, top / 2, top];
        let labels = scale.map(|amount| (amount, self.words(amount)));
        let links: Vec<_> = periods.iter().map(|period| self.link(*period)).collect();
        let patterns = chart.layers.iter().map(|Layer { part, .. }| {
            let id = fill_id(*part);
            part.fill().pattern(id)
        });
        view! {
            <div class="chart-image">
                <svg class="chart-bars" role="img" aria-labelledby="chart-title">
                    <title id="chart-title">{self.title()}</title>
                    <defs>{patterns.collect_view()}</defs>
                    {Vec::from(scale.map(|amount| line(amount, top)))}
                    {groups}
                    {Vec::from(labels.map(|(amount, words)| label(amount, top, words)))}
                </svg>
                <svg class="chart-links" aria-hidden="true">{links}</svg>
            </div>
        }
    }

    const fn length(&self) -> Length {
        self.chart.periods.length
    }

    fn title(&self) -> String {
        let total = self.chart.layers.iter().map(Layer::total).sum();
        let amount = match self.chart.by {
            By::Cost => format!("{} {}", self.words(total), self.currency),
            By::Status | By::Application | By::DeliveryTime => counted(total, "message"),
        };
        let (period, divided) = (self.length().word(), self.divided());
        format!("{amount} by {period} and {divided}; the table has the figures")
    }

    /// Returns the property that divides the bars into parts.
    const fn divided(&self) -> &'static str {
        match self.chart.by {
            By::Status | By::DeliveryTime => "status",
            By::Application | By::Cost => "application",
        }
    }

    /// Draws a layer: its part of each bar.
    fn layer(&self, place: usize, top: i64) -> impl IntoView + use<> {
        let layer = &self.chart.layers[place];
        let below = &self.chart.layers[..place];
        let bars: Vec<_> = (layer.periods.iter())
            .map(|(period, amount)| self.bar(*period, sum(below, *period), *amount, top))
            .collect();
        view! { <g fill=format!("url(#{})", fill_id(layer.part))>{bars}</g> }
    }

    /// Returns the index of a period in the chart, and the number of periods.
    const fn place(&self, period: i64) -> (i64, i64) {
        let periods = self.chart.periods;
        (period - periods.first, periods.last - periods.first + 1)
    }

    /// Draws a part of a period's bar. `foot` is the total of the parts below it.
    fn bar(&self, period: i64, foot: i64, amount: i64, top: i64) -> impl IntoView + use<> {
        bar_part(self.place(period), foot, amount, top)
    }

    /// Returns the address of the page that lists a period's messages.
    fn messages_of(&self, period: i64) -> String {
        let date = self.length().date(period);
        let address = self.filter.page_with(|filter| {
            filter.from.clone_from(&date);
            filter.to = date;
            let hour = self.length().hour(period);
            filter.hour = hour.map(|hour| hour.to_string()).unwrap_or_default();
            self.chart.key.as_str().clone_into(&mut filter.key);
        });
        format!("{address}#messages")
    }

    /// Returns the link to a period's messages. Its title shows the period's figures while the
    /// pointer rests on it.
    fn link(&self, period: i64) -> impl IntoView + use<> {
        let (at, count) = self.place(period);
        let amounts = self.chart.layers.iter().rev().filter_map(|layer| {
            let amount = layer.within(period);
            (amount > 0).then(|| format!("{} {}", self.words(amount), layer.part.word()))
        });
        let name = self.length().name(period);
        let words: Vec<_> = std::iter::once(name).chain(amounts).collect();
        view! {
            <g>
                <a href=self.messages_of(period) tabindex="-1">
                    <rect
                        class="chart-period"
                        x=percent(at, count)
                        width=percent(1, count)
                        height="100%"
                    >
                        <title>{words.join("\n")}</title>
                    </rect>
                </a>
            </g>
        }
    }

    /// Renders the first, the middle and the last period below the bars.
    fn dates(&self) -> impl IntoView + use<> {
        let (first, last) = (self.chart.periods.first, self.chart.periods.last);
        let mut shown = vec![first, i64::midpoint(first, last), last];
        shown.dedup();
        let length = self.length();
        // The sentence above the chart already names the day.
        let is_one_day = length.date(first) == length.date(last);
        let name = |period| match length.hour(period) {
            Some(hour) if is_one_day => format!("{hour:02}:00"),
            _ => length.name(period),
        };
        let shown: Vec<_> =
            shown.into_iter().map(|period| view! { <span>{name(period)}</span> }).collect();
        view! { <div class="chart-dates" aria-hidden="true">{shown}</div> }
    }

    /// Returns the legend: each fill with the amount of its part.
    fn totals(&self) -> AnyView {
        // From the top of a bar to its foot.
        let layers: Vec<_> = self.chart.layers.iter().rev().collect();
        let heading = match self.chart.by {
            By::Status | By::DeliveryTime => "Status",
            By::Application | By::Cost => "Application",
        };
        let table = Table::narrow(&layers).column(heading, |layer| self.swatch(layer.part));
        let total = |layer: &&Layer| self.words(layer.total());
        match self.chart.by {
            By::Status | By::Application | By::DeliveryTime => table.amount("Messages", total),
            By::Cost => table.money("Paid", &self.currency, total),
        }
        .view()
    }

    /// Returns an entry of the legend: a sample of the fill and the name of the part. The name
    /// links to the part's messages, except for messages under way: no filter selects them.
    fn swatch(&self, part: Part) -> impl IntoView + use<> {
        let href = self.filter.page_with(|filter| {
            match part {
                Part::Status(status) => status.as_str().clone_into(&mut filter.status),
                Part::Application(reference, _) => filter.application = reference.to_string(),
                Part::UnderWay => {}
            }
            self.chart.key.as_str().clone_into(&mut filter.key);
        });
        let href = (part != Part::UnderWay).then_some(href);
        view! {
            <svg class="swatch" aria-hidden="true">
                <rect width="100%" height="100%" fill=format!("url(#{})", fill_id(part))></rect>
            </svg>
            <a href=href>{part.word()}</a>
        }
    }

    /// Returns the chart's figures as a table, newest period first.
    fn table(&self) -> AnyView {
        let mut periods = self.periods();
        periods.reverse();
        let length = self.length();
        let heading = match length {
            Length::Day => in_zone("Day (UTC)"),
            Length::Hour => in_zone("Hour (UTC)"),
        };
        let mut table = Table::narrow(&periods).styled("figures", heading, |period| {
            view! { <a href=self.messages_of(*period)>{length.name(*period)}</a> }
        });
        for layer in &self.chart.layers {
            let amount = |period: &i64| self.words(layer.within(*period));
            table = match layer.part {
                Part::Status(status) => table.amount(status.as_str(), amount),
                Part::UnderWay => table.amount("under way", amount),
                Part::Application(reference, _) => {
                    table.titled("amount", reference.to_string(), amount)
                }
            };
        }
        let what = if self.chart.by == By::Cost { "Cost" } else { "Messages" };
        let region = format!("{what} by {} and {}", length.word(), self.divided());
        table
            .amount("Total", |period| self.words(sum(&self.chart.layers, *period)))
            .in_region(region)
    }
}

/// Returns the total of a period.
fn sum(layers: &[Layer], period: i64) -> i64 {
    layers.iter().map(|layer| layer.within(period)).sum()
}

fn fill_id(part: Part) -> String {
    format!("fill-{}", part.word().replace(' ', "-"))
}

/// Draws a line of the scale, behind the bars.
fn line(amount: i64, top: i64) -> impl IntoView {
    let y = percent(top - amount, top);
    view! { <line x1="0" x2="100%" y1=y.clone() y2=y></line> }
}

/// Writes the amount of a line of the scale, in front of the bars.
fn label(amount: i64, top: i64, words: String) -> impl IntoView {
    let y = percent(top - amount, top);
    (amount > 0).then(|| view! { <text y=y dy="1em">{words}</text> })
}
