//! The data of the chart: messages, costs or delivery times, by day or by hour.

use domain::quarter::DELIVERY_TIMES;
use domain::{KeyKind, MessageStatus, Money, Reference};
use serde::{Deserialize, Serialize};

use super::grouped;
use super::patterns::Fill;
use super::periods::Periods;
#[cfg(feature = "ssr")]
use {
    super::periods::Length,
    crate::problem::Problem,
    crate::reports::ReportFilter,
    domain::Zone,
    domain::quarter::Figures,
    domain::records::{DayCounts, StatusCounts},
    service::{FiguresByPeriod, MessageFilter, Service},
};

/// Returns the statuses from the foot of a bar to its top.
#[cfg(feature = "ssr")]
fn order() -> [MessageStatus; MessageStatus::ALL.len()] {
    let mut order = MessageStatus::ALL;
    order.sort_unstable_by_key(|status| status.bar().position);
    order
}

/// The kinds of chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum By {
    /// Messages by status.
    Status,
    /// Messages by application.
    Application,
    /// Amounts paid, by application.
    Cost,
    /// Delivery times of messages.
    DeliveryTime,
}

impl By {
    /// Every kind, with its value in the address and its name.
    pub const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::Status, "", "Messages by status"),
        (Self::Application, "application", "Messages by application"),
        (Self::Cost, "cost", "Cost by application"),
        (Self::DeliveryTime, "delivery", "Delivery times"),
    ];

    /// Returns the kind for a value in the address. An unknown value means messages by status.
    #[cfg(feature = "ssr")]
    fn read(word: &str) -> Self {
        let mut all = Self::ALL.into_iter();
        all.find(|(_, known, _)| *known == word).map_or(Self::Status, |(by, _, _)| by)
    }
}

/// The meaning of a part of the bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    Status(MessageStatus),
    /// Messages without a final status.
    UnderWay,
    /// An application, with its index in the account's list of applications.
    Application(Reference, usize),
}

impl Part {
    pub fn word(self) -> String {
        match self {
            Self::Status(status) => status.to_string(),
            Self::UnderWay => "under way".to_owned(),
            Self::Application(reference, _) => reference.to_string(),
        }
    }

    pub const fn fill(self) -> Fill {
        match self {
            Self::Status(status) => Fill::of_status(status),
            Self::UnderWay => Fill::of_status(MessageStatus::Submitted),
            Self::Application(_, place) => Fill::of_application(place),
        }
    }
}

/// A part of the bars, with its amount in each period. An amount is a number of messages, or
/// micro-units of money.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Layer {
    pub part: Part,
    /// Pairs of a period and its amount, in the order of the periods. Periods without an amount are
    /// left out.
    pub periods: Vec<(i64, i64)>,
}

impl Layer {
    pub fn within(&self, period: i64) -> i64 {
        let place = self.periods.binary_search_by_key(&period, |(period, _)| *period);
        place.map_or(0, |place| self.periods[place].1)
    }

    pub fn total(&self) -> i64 {
        self.periods.iter().map(|(_, amount)| amount).sum()
    }
}

/// Amounts by day or by hour, ready to be drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    pub periods: Periods,
    /// The layers that have an amount, from the foot of a bar to its top.
    pub layers: Vec<Layer>,
    /// Whether the amounts are known. A status that isn't final is counted only in a chart by
    /// status, by day and in UTC.
    pub is_counted: bool,
    pub by: By,
    /// The kind of key that sent the messages.
    pub key: KeyKind,
    /// The number of delivered messages, and of completed ones. `None` if the chart shows only one
    /// status, or money.
    pub delivered: Option<(i64, i64)>,
    /// The number of delivered messages for each range of delivery times, as in `Figures`. `None`
    /// if it wasn't read, or doesn't fit the chart.
    pub times: Option<[i64; DELIVERY_TIMES]>,
}

#[cfg(feature = "ssr")]
impl Chart {
    /// Returns the chart of live messages by status on these days.
    pub fn of_days(periods: Periods, figures: &FiguresByPeriod) -> Self {
        let mut layers = layers_by_status(figures, None);
        layers.retain(|layer| layer.total() > 0);
        Self {
            periods,
            layers,
            is_counted: true,
            by: By::Status,
            key: KeyKind::Live,
            delivered: None,
            times: None,
        }
    }

    /// Returns the chart for the days of the filters. Returns `None` if the filters select single
    /// messages, because counts are kept only by day and by quarter hour. The chart counts live
    /// messages unless the filters ask for test messages.
    pub async fn find(
        service: &Service,
        account_id: i64,
        applications: &[(Reference, String)],
        (filter, zone): (&ReportFilter, &Zone),
        (reference, wanted): (Option<Reference>, &MessageFilter),
    ) -> Result<Option<Self>, Problem> {
        if wanted.number.is_some()
            || wanted.requestid.is_some()
            || wanted.transid.is_some()
            || wanted.batchid.is_some()
        {
            return Ok(None);
        }
        let today = zone.day(service.clock().now());
        let periods = Periods::shown(wanted, zone, today);
        let by = By::read(&filter.by);
        let has_day_counts = by == By::Status && periods.length == Length::Day && zone.is_utc();
        let is_by_message = matches!(by, By::Status | By::Application);
        let is_under_way = wanted.status.is_some_and(|status| !status.is_final());
        let is_counted = has_day_counts || !is_by_message || !is_under_way;
        let source = Source {
            service,
            account_id,
            applications,
            reference,
            key: wanted.key.unwrap_or(KeyKind::Live),
            status: wanted.status,
            periods,
            zone,
        };
        let found = if has_day_counts {
            source.days_by_status().await?
        } else if is_counted {
            source.figures(by).await?
        } else {
            Content::default()
        };
        let mut layers = found.layers;
        layers.retain(|layer| layer.total() > 0);
        let has_rate = wanted.status.is_none() && by != By::Cost;
        let has_times = has_rate || by == By::DeliveryTime;
        Ok(Some(Self {
            periods,
            layers,
            is_counted,
            by,
            key: source.key,
            delivered: Some(found.delivered).filter(|_| has_rate),
            times: found.times.filter(|_| has_times),
        }))
    }
}

/// The parameters for building a chart.
#[cfg(feature = "ssr")]
struct Source<'a> {
    service: &'a Service,
    account_id: i64,
    applications: &'a [(Reference, String)],
    /// The application that the filters name, if any.
    reference: Option<Reference>,
    key: KeyKind,
    /// The status that the filters name, if any.
    status: Option<MessageStatus>,
    periods: Periods,
    zone: &'a Zone,
}

/// The figures that a chart shows.
#[cfg(feature = "ssr")]
#[derive(Default)]
struct Content {
    layers: Vec<Layer>,
    delivered: (i64, i64),
    times: Option<[i64; DELIVERY_TIMES]>,
}

#[cfg(feature = "ssr")]
impl Source<'_> {
    /// Builds a layer for each status from the counts by day.
    async fn days_by_status(&self) -> Result<Content, Problem> {
        let days = (self.periods.first, self.periods.last);
        let messages = self.service.messages();
        let found = messages.account_days(self.account_id, self.reference, Some(self.key), days);
        let found = found.await?;
        let statuses =
            order().into_iter().filter(|status| self.status.is_none_or(|only| only == *status));
        let layers = statuses.map(|status| Layer {
            part: Part::Status(status),
            periods: amounts(&found, |counts| counts.get(status)),
        });
        let mut sum = StatusCounts::default();
        for day in &found {
            sum.add(&day.counts);
        }
        // The counts by day have no delivery times.
        let times = match sum.get(MessageStatus::Delivered) {
            0 => None,
            _ => self.figures(By::DeliveryTime).await?.times,
        };
        Ok(Content {
            layers: layers.collect(),
            delivered: (sum.get(MessageStatus::Delivered), sum.rated()),
            times,
        })
    }

    /// Builds the layers from the figures by quarter hour.
    async fn figures(&self, by: By) -> Result<Content, Problem> {
        let ranges = self.periods.quarters(self.zone);
        let (account, key) = (self.account_id, Some(self.key));
        let messages = self.service.messages();
        let found = messages.account_figures(account, self.reference, key, &ranges);
        let found = found.await?;
        let (mut all, mut sum) = (FiguresByPeriod::new(), Figures::default());
        for (_, periods) in &found {
            for (period, figures) in periods {
                all.entry(*period).or_default().add(figures);
                sum.add(figures);
            }
        }
        let layers = match by {
            By::Status => layers_by_status(&all, self.status),
            By::Application => self.by_application(&found, |figures| count(figures, self.status)),
            By::Cost => self.by_application(&found, |figures| figures.cost.micros()),
            By::DeliveryTime => Vec::new(),
        };
        Ok(Content {
            layers,
            delivered: (sum.delivered(), sum.accepted - sum.under_way()),
            times: Some(sum.delivered),
        })
    }

    /// Builds a layer for each application.
    fn by_application(
        &self,
        found: &[(Reference, FiguresByPeriod)],
        amount: impl Fn(&Figures) -> i64,
    ) -> Vec<Layer> {
        let layers = found.iter().map(|(of, periods)| {
            let mut references = self.applications.iter().map(|(reference, _)| *reference);
            let place = references.position(|reference| reference == *of);
            Layer {
                part: Part::Application(*of, place.unwrap_or_default()),
                periods: layer(periods, &amount),
            }
        });
        layers.collect()
    }
}

/// Builds a layer for each final status, and one for the messages under way, or only the layer of
/// the status `only`.
#[cfg(feature = "ssr")]
fn layers_by_status(figures: &FiguresByPeriod, only: Option<MessageStatus>) -> Vec<Layer> {
    let statuses = order().into_iter().filter(|status| status.is_final());
    let chosen = statuses.filter(|status| only.is_none_or(|only| only == *status));
    let mut layers: Vec<_> = chosen
        .map(|status| Layer {
            part: Part::Status(status),
            periods: layer(figures, |figures| figures.of_status(status)),
        })
        .collect();
    if only.is_none() {
        let under_way = Layer { part: Part::UnderWay, periods: layer(figures, Figures::under_way) };
        // Above the delivered messages.
        layers.insert(1, under_way);
    }
    layers
}

/// Returns the number of messages, or the number with a status, which must be final.
#[cfg(feature = "ssr")]
pub fn count(figures: &Figures, status: Option<MessageStatus>) -> i64 {
    match status {
        Some(status) => figures.of_status(status),
        None => figures.accepted,
    }
}

/// Returns the periods with an amount above 0.
#[cfg(feature = "ssr")]
fn layer(figures: &FiguresByPeriod, amount: impl Fn(&Figures) -> i64) -> Vec<(i64, i64)> {
    let amounts = figures.iter();
    let amounts = amounts.map(|(period, figures)| (*period, amount(figures)));
    amounts.filter(|(_, amount)| *amount > 0).collect()
}

/// Returns the days with an amount above 0.
#[cfg(feature = "ssr")]
fn amounts(days: &[DayCounts], amount: impl Fn(&StatusCounts) -> i64) -> Vec<(i64, i64)> {
    let amounts = days.iter().map(|day| (day.day, amount(&day.counts)));
    amounts.filter(|(_, amount)| *amount > 0).collect()
}

/// Formats an amount of a chart.
pub fn amount_in_words(by: By, amount: i64) -> String {
    match by {
        By::Status | By::Application | By::DeliveryTime => grouped(amount),
        By::Cost => Money::from_micros(amount).shown(),
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::By;

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
}
