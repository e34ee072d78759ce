//! The data of the chart: messages, or what was paid for them, by day.

use domain::records::StatusCounts;
use domain::{KeyKind, MessageStatus, Money, Reference};
use serde::{Deserialize, Serialize};

use super::fills::Fill;
use super::grouped;
#[cfg(feature = "ssr")]
use {
    super::days,
    crate::problem::Problem,
    crate::reports::ReportFilter,
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
    pub const ALL: [(Self, &'static str, &'static str); 3] = [
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
    pub counts: Option<StatusCounts>,
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
        let source = Source {
            service,
            account_id,
            applications,
            reference,
            key: wanted.key.unwrap_or(KeyKind::Live),
            status: wanted.status,
            days: (*days.start(), *days.end()),
        };
        let by = By::read(&filter.by);
        let (mut layers, counts) = match by {
            By::Status => source.by_status().await?,
            By::Application => source.by_application().await?,
            By::Cost => (source.cost().await?, StatusCounts::default()),
        };
        layers.retain(|layer| layer.total() > 0);
        Ok(Some(Self {
            first_day: source.days.0,
            last_day: source.days.1,
            layers,
            by,
            key: source.key,
            counts: Some(counts).filter(|_| wanted.status.is_none() && by != By::Cost),
        }))
    }
}

/// What a chart is made from.
#[cfg(feature = "ssr")]
struct Source<'a> {
    service: &'a Service,
    account_id: i64,
    applications: &'a [(Reference, Category)],
    /// The application of the filters, if they name one.
    reference: Option<Reference>,
    key: KeyKind,
    /// The status of the filters, if they name one.
    status: Option<MessageStatus>,
    days: (i64, i64),
}

#[cfg(feature = "ssr")]
impl Source<'_> {
    async fn days_of(&self, reference: Option<Reference>) -> Result<Vec<DayCounts>, Problem> {
        let key = Some(self.key);
        let found = self
            .service
            .account_days(self.account_id, reference, key, self.days);
        Ok(found.await?)
    }

    /// A layer for each status, and the counts of all of them.
    async fn by_status(&self) -> Result<(Vec<Layer>, StatusCounts), Problem> {
        let found = self.days_of(self.reference).await?;
        let statuses = ORDER
            .into_iter()
            .filter(|status| self.status.is_none_or(|only| only == *status));
        let layers = statuses.map(|status| Layer {
            part: Part::Status(status),
            days: amounts(&found, |counts| counts.get(status)),
        });
        Ok((layers.collect(), sum(&found)))
    }

    /// A layer for each application, and the counts of all of them.
    async fn by_application(&self) -> Result<(Vec<Layer>, StatusCounts), Problem> {
        let (mut layers, mut counts) = (Vec::new(), StatusCounts::default());
        for (place, (reference, _)) in self.applications.iter().enumerate() {
            if self.reference.is_some_and(|only| only != *reference) {
                continue;
            }
            let found = self.days_of(Some(*reference)).await?;
            counts.add(&sum(&found));
            layers.push(Layer {
                part: Part::Application(*reference, place),
                days: amounts(&found, |counts| match self.status {
                    Some(status) => counts.get(status),
                    None => counts.total(),
                }),
            });
        }
        Ok((layers, counts))
    }

    /// A layer for each application, of what was paid.
    async fn cost(&self) -> Result<Vec<Layer>, Problem> {
        // The filters may name days to come alone.
        if self.days.0 > self.days.1 {
            return Ok(Vec::new());
        }
        let paid = self
            .service
            .account_paid(self.account_id, self.reference, self.days);
        let layer = |(of, paid): (Reference, Vec<(i64, Money)>)| {
            let mut references = self.applications.iter().map(|(reference, _)| *reference);
            let place = references.position(|reference| reference == of);
            let days = paid.into_iter().map(|(day, paid)| (day, paid.micros()));
            Layer {
                part: Part::Application(of, place.unwrap_or_default()),
                days: days.collect(),
            }
        };
        Ok(paid.await?.into_iter().map(layer).collect())
    }
}

#[cfg(feature = "ssr")]
fn sum(days: &[DayCounts]) -> StatusCounts {
    let mut counts = StatusCounts::default();
    for day in days {
        counts.add(&day.counts);
    }
    counts
}

/// The days on which an amount isn't 0.
#[cfg(feature = "ssr")]
fn amounts(days: &[DayCounts], amount: impl Fn(&StatusCounts) -> i64) -> Vec<(i64, i64)> {
    let amounts = days.iter().map(|day| (day.day, amount(&day.counts)));
    amounts.filter(|(_, amount)| *amount > 0).collect()
}

/// An amount of a chart in words.
pub fn amount_in_words(by: By, amount: i64) -> String {
    match by {
        By::Status | By::Application => grouped(amount),
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
