//! The chart drawn as SVG, and the same figures as a table.

use leptos::prelude::*;

use super::axis::{percent, top};
use super::chart::{By, Chart, Layer, Part, amount_in_words};
use super::{counted, days};
use crate::reports::ReportFilter;
use crate::ui::Table;

/// The bars of a chart: one for each day, with a part for each layer.
pub struct Bars {
    pub chart: Chart,
    /// The filters that the chart is of.
    pub filter: ReportFilter,
    pub currency: String,
}

impl Bars {
    /// The drawing and its table, or a sentence that there is nothing to draw.
    pub fn view(&self) -> AnyView {
        if self.chart.layers.is_empty() {
            let nothing = match self.chart.by {
                By::Status | By::Application => "No messages in these days.",
                By::Cost => "Nothing was paid in these days.",
            };
            return view! { <p class="empty">{nothing}</p> }.into_any();
        }
        view! {
            <div class="chart">
                <figure>{self.drawing()} {self.dates()}</figure>
                {self.totals()}
            </div>
            <details>
                <summary>"The chart as a table"</summary>
                {self.table()}
            </details>
        }
        .into_any()
    }

    fn words(&self, amount: i64) -> String {
        amount_in_words(self.chart.by, amount)
    }

    /// The days that have an amount, in their order.
    fn days(&self) -> Vec<i64> {
        let layers = self.chart.layers.iter();
        let mut days: Vec<i64> = layers
            .flat_map(|layer| layer.days.iter().map(|(day, _)| *day))
            .collect();
        days.sort_unstable();
        days.dedup();
        days
    }

    /// The SVG. All its lengths are percentages, so that it fills any width without being
    /// stretched. The links of the days lie above the image in an SVG of their own: an image has no
    /// links for screen readers, which find them in the table.
    fn drawing(&self) -> impl IntoView + use<> {
        let (chart, days) = (&self.chart, self.days());
        let totals = days.iter().map(|day| sum(&chart.layers, *day));
        let top = top(totals.max().unwrap_or_default());
        let groups: Vec<_> = (0..chart.layers.len())
            .map(|place| self.layer(place, top))
            .collect();
        let scale = [0, top / 2, top];
        let labels = scale.map(|amount| (amount, self.words(amount)));
        let links: Vec<_> = days.iter().map(|day| self.link(*day)).collect();
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
                <svg class="chart-links" aria-hidden="true">
                    {links}
                </svg>
            </div>
        }
    }

    fn title(&self) -> String {
        let total = self.chart.layers.iter().map(Layer::total).sum();
        match self.chart.by {
            By::Status => format!(
                "{} by day and status; the table has the figures",
                counted(total, "message")
            ),
            By::Application => format!(
                "{} by day and application; the table has the figures",
                counted(total, "message")
            ),
            By::Cost => format!(
                "{} {} by day and application; the table has the figures",
                self.words(total),
                self.currency
            ),
        }
    }

    /// The parts of all bars that stand for one thing.
    fn layer(&self, place: usize, top: i64) -> impl IntoView + use<> {
        let layer = &self.chart.layers[place];
        let below = &self.chart.layers[..place];
        let bars: Vec<_> = (layer.days.iter())
            .map(|(day, amount)| self.bar(*day, sum(below, *day), *amount, top))
            .collect();
        view! { <g fill=format!("url(#{})", fill_id(layer.part))>{bars}</g> }
    }

    /// A day's place among the days, and how many days there are.
    const fn place(&self, day: i64) -> (i64, i64) {
        (
            day - self.chart.first_day,
            self.chart.last_day - self.chart.first_day + 1,
        )
    }

    /// A part of a day's bar, above the parts at its foot.
    fn bar(&self, day: i64, foot: i64, amount: i64, top: i64) -> impl IntoView + use<> {
        let (at, days) = self.place(day);
        view! {
            <rect
                // A fifth of a day's width is left free.
                x=percent(10 * at + 1, 10 * days)
                width=percent(8, 10 * days)
                y=percent(top - foot - amount, top)
                height=percent(amount, top)
            ></rect>
        }
    }

    /// The address of a day's messages.
    fn messages_of(&self, day: i64) -> String {
        let day = days::name(day);
        let address = self.filter.page_with(|filter| {
            filter.from.clone_from(&day);
            filter.to = day;
            self.chart.key.as_str().clone_into(&mut filter.key);
        });
        format!("{address}#messages")
    }

    /// The link to a day's messages, with the day's figures, which are shown where the pointer
    /// rests on it.
    fn link(&self, day: i64) -> impl IntoView + use<> {
        let (at, days) = self.place(day);
        let amounts = self.chart.layers.iter().rev().filter_map(|layer| {
            let amount = layer.on(day);
            (amount > 0).then(|| format!("{} {}", self.words(amount), layer.part.word()))
        });
        let words: Vec<_> = std::iter::once(days::name(day)).chain(amounts).collect();
        view! {
            <g>
                <a href=self.messages_of(day) tabindex="-1">
                    <rect
                        class="chart-day"
                        x=percent(at, days)
                        width=percent(1, days)
                        height="100%"
                    >
                        <title>{words.join("\n")}</title>
                    </rect>
                </a>
            </g>
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

    /// The key of the fills, with the amount of each part.
    fn totals(&self) -> AnyView {
        // From the top of a bar to its foot.
        let layers: Vec<_> = self.chart.layers.iter().rev().collect();
        let heading = match self.chart.by {
            By::Status => "Status",
            By::Application | By::Cost => "Application",
        };
        let table = Table::narrow(&layers).column(heading, |layer| self.swatch(layer.part));
        let total = |layer: &&Layer| self.words(layer.total());
        match self.chart.by {
            By::Status | By::Application => table.amount("Messages", total),
            By::Cost => table.money("Paid", &self.currency, total),
        }
        .view()
    }

    /// A part in the key: a sample of its fill, and its word, which is a link to its messages.
    fn swatch(&self, part: Part) -> impl IntoView + use<> {
        let href = self.filter.page_with(|filter| {
            match part {
                Part::Status(status) => status.as_str().clone_into(&mut filter.status),
                Part::Application(reference, _) => filter.application = reference.to_string(),
            }
            self.chart.key.as_str().clone_into(&mut filter.key);
        });
        view! {
            <svg class="swatch" aria-hidden="true">
                <rect width="100%" height="100%" fill=format!("url(#{})", fill_id(part))></rect>
            </svg>
            <a href=href>{part.word()}</a>
        }
    }

    /// The chart's figures, the newest day first.
    fn table(&self) -> AnyView {
        let mut days = self.days();
        days.reverse();
        let mut table = Table::narrow(&days).styled("figures", "Day (UTC)", |day| {
            view! { <a href=self.messages_of(*day)>{days::name(*day)}</a> }
        });
        for layer in &self.chart.layers {
            let amount = |day: &i64| self.words(layer.on(*day));
            table = match layer.part {
                Part::Status(status) => table.amount(status.as_str(), amount),
                Part::Application(reference, _) => {
                    table.titled("amount", reference.to_string(), amount)
                }
            };
        }
        let region = match self.chart.by {
            By::Status => "Messages by day and status",
            By::Application => "Messages by day and application",
            By::Cost => "Cost by day and application",
        };
        table
            .amount("Total", |day| self.words(sum(&self.chart.layers, *day)))
            .in_region(region)
    }
}

/// The amounts of a day together.
fn sum(layers: &[Layer], day: i64) -> i64 {
    layers.iter().map(|layer| layer.on(day)).sum()
}

fn fill_id(part: Part) -> String {
    format!("fill-{}", part.word())
}

/// A line of the scale, behind the bars.
fn line(amount: i64, top: i64) -> impl IntoView {
    let y = percent(top - amount, top);
    view! { <line x1="0" x2="100%" y1=y.clone() y2=y></line> }
}

/// The amount that a line of the scale stands for, in front of the bars.
fn label(amount: i64, top: i64, words: String) -> impl IntoView {
    let y = percent(top - amount, top);
    (amount > 0).then(|| view! { <text y=y dy="1em">{words}</text> })
}
