//! What the chart shows: messages, or what was paid for them, by day.

use domain::records::StatusCounts;
use domain::{KeyKind, MessageStatus, Money, Reference};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use super::bars::Bars;
use super::fills::Fill;
use super::{counted, days, grouped};
use crate::reports::ReportFilter;
#[cfg(feature = "ssr")]
use {
    crate::problem::Problem,
    domain::Category,
    domain::records::DayCounts,
    service::{MessageFilter, Service},
};

/// The statuses from the foot of a bar to its top: a status is told by its place too, and not by
/// its colour alone.
#[cfg(feature = "ssr")]
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

/// What the bars are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum By {
    /// Messages, by status.
    Status,
    /// Messages, by application.
    Application,
    /// What was paid, by application.
    Cost,
}

impl By {
    /// Each, with its word in the address and its name.
    const ALL: [(Self, &'static str, &'static str); 3] = [
        (Self::Status, "", "Messages by status"),
        (Self::Application, "application", "Messages by application"),
        (Self::Cost, "cost", "Cost by application"),
    ];

    /// What the address asks for; messages by status where it asks for anything else.
    #[cfg(feature = "ssr")]
    fn read(word: &str) -> Self {
        let mut all = Self::ALL.into_iter();
        all.find(|(_, known, _)| *known == word)
            .map_or(Self::Status, |(by, _, _)| by)
    }
}

/// What a part of each bar stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    Status(MessageStatus),
    /// An application, and its place among those of the account.
    Application(Reference, usize),
}

impl Part {
    pub fn word(self) -> String {
        match self {
            Self::Status(status) => status.to_string(),
            Self::Application(reference, _) => reference.to_string(),
        }
    }

    pub const fn fill(self) -> Fill {
        match self {
            Self::Status(status) => Fill::of_status(status),
            Self::Application(_, place) => Fill::of_application(place),
        }
    }
}

/// A part of the bars, with its amount on each day that has one: messages, or micro-units of money.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Layer {
    pub part: Part,
    /// In the order of the days.
    pub days: Vec<(i64, i64)>,
}

impl Layer {
    pub fn on(&self, day: i64) -> i64 {
        let place = self.days.binary_search_by_key(&day, |(day, _)| *day);
        place.map_or(0, |place| self.days[place].1)
    }

    pub fn total(&self) -> i64 {
        self.days.iter().map(|(_, amount)| amount).sum()
    }
}

/// Amounts by day, ready to be drawn. Days are counted since 1970-01-01.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    pub first_day: i64,
    pub last_day: i64,
    /// From the foot of a bar to its top; those that have an amount.
    pub layers: Vec<Layer>,
    pub by: By,
    /// The key that the messages were sent with.
    pub key: KeyKind,
    /// How the messages of these days ended; `None` where the chart has those of one status, or
    /// money.
    counts: Option<StatusCounts>,
}

#[cfg(feature = "ssr")]
impl Chart {
    /// The chart of the filters' days; `None` where the filters choose among the messages of a day,
    /// of which no counts are kept. Messages of the test key are in it if the filters ask for them.
    ///
    /// # Errors
    /// When the application isn't the account's, or the service fails.
    pub async fn find(
        service: &Service,
        account_id: i64,
        applications: &[(Reference, Category)],
        filter: &ReportFilter,
        (reference, wanted): (Option<Reference>, &MessageFilter),
    ) -> Result<Option<Self>, Problem> {
        if wanted.number.is_some()
            || wanted.requestid.is_some()
            || wanted.transid.is_some()
            || wanted.batchid.is_some()
        {
            return Ok(None);
        }
        let days = days::shown(wanted, service.clock().now().day());
        let range = (*days.start(), *days.end());
        let key = wanted.key.unwrap_or(KeyKind::Live);
        let by = By::read(&filter.by);
        let mut counts = StatusCounts::default();
        let mut layers = Vec::new();
        match by {
            By::Status => {
                let found = service.account_days(account_id, reference, Some(key), range);
                let found = found.await?;
                found.iter().for_each(|day| counts.add(&day.counts));
                layers.extend(ORDER.map(|status| Layer {
                    part: Part::Status(status),
                    days: amounts(&found, |counts| counts.get(status)),
                }));
                layers.retain(|layer| {
                    let only = wanted.status.map(Part::Status);
                    only.is_none_or(|only| only == layer.part)
                });
            }
            By::Application => {
                for (place, part) in parts(applications, reference) {
                    let found = service.account_days(account_id, Some(part), Some(key), range);
                    let found = found.await?;
                    found.iter().for_each(|day| counts.add(&day.counts));
                    layers.push(Layer {
                        part: Part::Application(part, place),
                        days: amounts(&found, |counts| match wanted.status {
                            Some(status) => counts.get(status),
                            None => counts.total(),
                        }),
                    });
                }
            }
            By::Cost => {
                let paid = service.account_paid(account_id, reference, range).await?;
                layers.extend(paid.into_iter().map(|(part, paid)| {
                    let places = applications.iter().map(|(reference, _)| *reference);
                    let place = places.take_while(|other| *other != part).count();
                    Layer {
                        part: Part::Application(part, place),
                        days: paid
                            .into_iter()
                            .map(|(day, paid)| (day, paid.micros()))
                            .collect(),
                    }
                }));
            }
        }
        layers.retain(|layer| layer.total() > 0);
        Ok(Some(Self {
            first_day: range.0,
            last_day: range.1,
            layers,
            by,
            key,
            counts: Some(counts).filter(|_| wanted.status.is_none() && by != By::Cost),
        }))
    }
}

/// The applications that the chart is of, with their places among all of them.
#[cfg(feature = "ssr")]
fn parts(
    applications: &[(Reference, Category)],
    reference: Option<Reference>,
) -> impl Iterator<Item = (usize, Reference)> {
    let all = applications.iter().map(|(reference, _)| *reference);
    all.enumerate()
        .filter(move |(_, other)| reference.is_none_or(|only| only == *other))
}

/// The days on which an amount isn't 0.
#[cfg(feature = "ssr")]
fn amounts(days: &[DayCounts], amount: impl Fn(&StatusCounts) -> i64) -> Vec<(i64, i64)> {
    let amounts = days.iter().map(|day| (day.day, amount(&day.counts)));
    amounts.filter(|(_, amount)| *amount > 0).collect()
}

/// The chart and its table, or a sentence that there are no messages.
#[component]
pub fn ChartSection(chart: Chart, filter: ReportFilter, currency: String) -> impl IntoView {
    let (first, last) = (days::name(chart.first_day), days::name(chart.last_day));
    let whose = match filter.application.as_str() {
        "" => "All applications".to_owned(),
        reference => format!("Application {reference}"),
    };
    let what = match (chart.by, chart.key) {
        (By::Cost, _) => "what was paid for live messages",
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
        let href = filter.page_with(|filter| filter.by = word.to_owned());
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

/// An amount of a chart in words.
pub fn amount_in_words(by: By, amount: i64) -> String {
    match by {
        By::Status | By::Application => grouped(amount),
        By::Cost => Money::from_micros(amount).to_string(),
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use domain::records::StatusCounts;

    use super::{By, delivery_rate};

    #[test]
    fn a_chart_is_of_messages_by_status_unless_the_address_asks_for_another() {
        for (word, by) in [
            ("", By::Status),
            ("application", By::Application),
            ("cost", By::Cost),
            ("x", By::Status),
        ] {
            assert_eq!(By::read(word), by);
        }
    }

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
