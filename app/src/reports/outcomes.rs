//! Bars of good and bad outcomes, by period.

use leptos::prelude::*;

use super::axis::{bar_part, percent, top};
use super::{Fill, grouped};
use crate::ui::Table;

/// The counts of a period.
#[derive(Clone)]
pub struct OutcomeBar {
    /// The name of the period.
    pub name: String,
    pub good: i64,
    pub bad: i64,
}

impl OutcomeBar {
    const fn total(&self) -> i64 {
        self.good + self.bad
    }
}

/// A chart with its legend and its table. The bars are in chronological order.
pub struct OutcomeChart<'a> {
    /// A word that no other chart of the page has.
    pub id: &'static str,
    /// A sentence for screen readers.
    pub title: String,
    /// The heading of the periods in the table.
    pub heading: &'static str,
    /// The meanings of the parts of a bar, the good one first.
    pub words: (&'static str, &'static str),
    pub bars: &'a [OutcomeBar],
}

impl OutcomeChart<'_> {
    pub fn view(&self) -> AnyView {
        let name = |bar: Option<&OutcomeBar>| bar.map(|bar| bar.name.clone());
        let (first, last) = (name(self.bars.first()), name(self.bars.last()));
        view! {
            <div class="chart">
                <figure>
                    {self.drawing()}
                    <div class="chart-dates" aria-hidden="true"><span>{first}</span><span>{last}</span></div>
                    {self.legend()}
                </figure>
                {self.table()}
            </div>
        }
        .into_any()
    }

    fn fills(&self) -> [String; 2] {
        ["good", "bad"].map(|part| format!("fill-{}-{part}", self.id))
    }

    fn drawing(&self) -> impl IntoView + use<> {
        let top = top(self.bars.iter().map(OutcomeBar::total).max().unwrap_or_default());
        let count = i64::try_from(self.bars.len()).unwrap_or(1);
        let bar = |at: usize, foot: i64, amount: i64| {
            bar_part((i64::try_from(at).unwrap_or_default(), count), foot, amount, top)
        };
        let bars = |amounts: fn(&OutcomeBar) -> (i64, i64)| -> Vec<_> {
            let amounts = self.bars.iter().map(amounts).enumerate();
            amounts.map(|(at, (foot, amount))| bar(at, foot, amount)).collect()
        };
        let y = |amount| percent(top - amount, top);
        let lines = [0, top / 2, top].map(|amount| {
            view! { <line x1="0" x2="100%" y1=y(amount) y2=y(amount)></line> }
        });
        let labels = [top / 2, top].map(|amount| {
            view! { <text y=y(amount) dy="1em">{grouped(amount)}</text> }
        });
        let [good, bad] = self.fills();
        view! {
            <svg class="chart-bars" role="img" aria-label=self.title.clone()>
                <defs>
                    {Fill::of_outcome(true).pattern(good.clone())}
                    {Fill::of_outcome(false).pattern(bad.clone())}
                </defs>
                {Vec::from(lines)}
                <g fill=format!("url(#{good})")>{bars(|bar| (0, bar.good))}</g>
                <g fill=format!("url(#{bad})")>{bars(|bar| (bar.good, bar.bad))}</g>
                {Vec::from(labels)}
            </svg>
        }
    }

    fn legend(&self) -> impl IntoView + use<> {
        let [good, bad] = self.fills();
        let entries = [(good, self.words.0), (bad, self.words.1)].map(|(fill, word)| {
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

    fn table(&self) -> AnyView {
        let newest_first: Vec<_> = self.bars.iter().rev().cloned().collect();
        Table::narrow(&newest_first)
            .styled("figures", self.heading, |bar| bar.name.clone())
            .amount(self.words.0, |bar| grouped(bar.good))
            .amount(self.words.1, |bar| grouped(bar.bad))
            .view()
    }
}
