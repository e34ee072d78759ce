//! Margins: what customers pay, less what carriers charge.

use std::collections::HashMap;

use domain::ids::{self, Shard, id_of_day};
use domain::records::{MarginFigures, MarginLine, MarginReport, SYSTEM_KIND};
use domain::{Kind, Money, Number, PriceHistory, Timestamp};

use crate::delivery::routing::Message;
use crate::{Messages, run_detached};
use store::error::{Error, Fault, Refusal, Result};
use store::gate::Priority;
use store::margins::{self, Counted, CountedMessage};
use store::query::Conn;
use store::{Chore, installation, messages, tally};

pub const MARGIN_DAYS_MAX: i64 = 92;
/// The maximum number of prefixes, and of applications, in a report.
const ROWS_MAX: i64 = 100;
/// The maximum number of lines of a report that lists each day, rule and application.
const LINES_MAX: i64 = 100_000;
/// The number of messages that are read at a time.
const CHUNK: i64 = 5_000;

type Figures = HashMap<Counted, MarginFigures>;

impl Messages<'_> {
    /// Counts the days that are over and weren't counted yet. Counts a day again if not all its
    /// messages were final: once when only scheduled messages aren't final, and then whenever some
    /// of these have become final.
    ///
    /// # Errors
    /// `Failed` if a shard can't be read. `Failed` or `Uncertain` if the figures can't be stored.
    pub async fn count_margins(&self) -> Result<()> {
        let today = self.now().day();
        let (first, counted, unfinished) = {
            let mut conn = self.store().read().await?;
            let first = match margins::last_settled(&mut conn).await? {
                Some(day) => day + 1,
                None => self.first_day().await?.unwrap_or(today),
            };
            let counted = margins::counted(&mut conn, first).await?;
            (first, counted, margins::unfinished(&mut conn).await?)
        };
        let from = unfinished.first().map_or(first, |(day, _)| first.min(*day));
        let (below, open) = self.open_days(from).await?;
        let open = |day| open.get(&day).copied().unwrap_or_default();
        for (day, before) in unfinished {
            if open(day) != before {
                self.count_margin(day, Some(open(day))).await?;
            }
        }
        for day in first..today {
            let is_settled = day < below;
            if is_settled || !counted.contains(&day) {
                self.count_margin(day, is_settled.then(|| open(day))).await?;
            }
        }
        Ok(())
    }

    /// Returns the day below which only scheduled messages aren't final, and for each day from
    /// `from` on the number of live messages that aren't final.
    async fn open_days(&self, from: i64) -> Result<(i64, HashMap<i64, i64>)> {
        let (mut below, mut open) = (i64::MAX, HashMap::new());
        for shard in self.shards() {
            let mut conn = self.store().read_at(shard).await?;
            // Later messages of the mark's day may not be final.
            let low = installation::swept(&mut conn).await?.low;
            below = below.min(Timestamp::from_unix_ms(ids::id_unix_ms(low)).day());
            for (day, n) in tally::open_live(&mut conn, from).await? {
                *open.entry(day).or_default() += n;
            }
        }
        Ok((below, open))
    }

    /// Returns the day of the first message.
    async fn first_day(&self) -> Result<Option<i64>> {
        let mut first: Option<i64> = None;
        for shard in self.shards() {
            let mut conn = self.store().read_at(shard).await?;
            let of_shard = messages::first(&mut conn, 0, i64::MAX).await?;
            first = first.into_iter().chain(of_shard).min();
        }
        Ok(first.map(|id| Timestamp::from_unix_ms(ids::id_unix_ms(id)).day()))
    }

    /// Counts a day. Other work continues while the messages are read, because only storing the
    /// figures takes a write transaction.
    async fn count_margin(&self, day: i64, unfinished: Option<i64>) -> Result<()> {
        let mut figures = Figures::new();
        for shard in self.shards() {
            let mut conn = self.store().read_at(shard).await?;
            let prices = self.money().price_history(&mut conn).await?;
            let (mut from, below) = (id_of_day(day), id_of_day(day + 1));
            loop {
                let found = margins::messages(&mut conn, (from, below), CHUNK).await?;
                for message in &found {
                    self.add(&mut figures, &prices, message)?;
                }
                match found.last() {
                    Some(last) if found.len().cast_signed() as i64 == CHUNK => from = last.id + 1,
                    _ => break,
                }
            }
        }
        if figures.is_empty() {
            return Ok(());
        }
        let service = self.0.clone();
        run_detached(async move {
            let store = service.store();
            let chore = Chore::CountMargins;
            let tx = store.begin_chore(chore, Shard::FIRST, Priority::Bulk).await?;
            // Another process is counting.
            let Some(mut tx) = tx else { return Ok(()) };
            margins::store(&mut tx, (day, unfinished), &figures).await?;
            tx.commit().await
        })
        .await
    }

    fn add(
        &self,
        figures: &mut Figures,
        prices: &PriceHistory,
        message: &CountedMessage,
    ) -> Result<()> {
        let number = Number::from_stored(message.number.clone(), message.kind);
        let price = prices.explain(&number, message.created_at, message.unit_price);
        let rule = match (price.prefix, message.kind) {
            _ if message.cost == Money::ZERO => SYSTEM_KIND.to_owned(),
            (Some(prefix), _) => prefix.into(),
            (None, Kind::Local) => Kind::Local.as_str().to_owned(),
            (None, Kind::International) => Kind::International.as_str().to_owned(),
        };
        let carrier = message.carrier.clone().unwrap_or_default();
        let sum = figures.entry((message.reference, rule, carrier)).or_default();
        let one = self.figures_of(message);
        *sum =
            one.and_then(|one| sum.checked_add(&one)).ok_or(Error::Failed(Fault::MoneyOverflow))?;
        Ok(())
    }

    /// Returns the figures of a message, or `None` if they overflow.
    fn figures_of(&self, message: &CountedMessage) -> Option<MarginFigures> {
        let kept = message.cost.checked_sub(message.released)?;
        let mut figures = MarginFigures {
            messages: 1,
            pages: if kept > Money::ZERO { message.pages } else { 0 },
            charged: kept,
            ..MarginFigures::default()
        };
        let Some(carrier) = &message.carrier else {
            return Some(figures);
        };
        figures.segments = message.segments;
        let network = self.inner.router.network();
        let facts = Message {
            number: &message.number,
            kind: message.kind,
            sender: message.sender.as_deref(),
            application: Some(message.reference),
            segments: usize::try_from(message.segments).ok()?,
        };
        let cost = if network.is_sandbox(carrier) {
            Some(Money::ZERO)
        } else {
            network.cost(carrier, &facts)
        };
        match cost {
            Some(cost) => {
                let segments = usize::try_from(message.segments).ok()?;
                figures.cost = cost.checked_times(segments)?;
            }
            None => figures.unpriced = message.segments,
        }
        Some(figures)
    }

    /// Returns the margins of a range of days. Days are counted since 1970-01-01 UTC, and both
    /// bounds are included.
    ///
    /// # Errors
    /// `DaysInvalid` if there are too many days, or the first day is after the last.
    pub async fn margins(&self, days: (i64, i64)) -> Result<MarginReport> {
        must_fit(days)?;
        let mut conn = self.store().read().await?;
        let by_day = margins::by_day(&mut conn, days).await?;
        let mut total = MarginFigures::default();
        for row in &by_day {
            total = total.checked_add(&row.figures).ok_or(Error::Failed(Fault::MoneyOverflow))?;
        }
        Ok(MarginReport {
            currency: installation::currency(&mut conn).await?,
            first: days.0,
            last: days.1,
            counted: margins::last(&mut conn).await?,
            final_until: final_until(&mut conn).await?,
            days: by_day,
            rules: margins::by_rule(&mut conn, days, ROWS_MAX).await?,
            applications: margins::by_application(&mut conn, days, ROWS_MAX).await?,
            total,
        })
    }

    /// Returns the margins of a range of days, with a line for each day, rule and application.
    ///
    /// # Errors
    /// Those of [`Messages::margins`]. Also `DaysInvalid` if there are too many lines.
    pub async fn margin_lines(&self, days: (i64, i64)) -> Result<Vec<MarginLine>> {
        must_fit(days)?;
        let mut conn = self.store().read().await?;
        let lines = margins::lines(&mut conn, days, LINES_MAX + 1).await?;
        if lines.len().cast_signed() as i64 > LINES_MAX {
            return Err(Refusal::DaysInvalid.into());
        }
        Ok(lines)
    }
}

fn must_fit((first, last): (i64, i64)) -> Result<()> {
    let fits = first <= last && last - first < MARGIN_DAYS_MAX;
    Ok(fits.then_some(()).ok_or(Refusal::DaysInvalid)?)
}

/// Returns the last day up to which the figures of all days are final.
async fn final_until(conn: Conn<'_>) -> Result<Option<i64>> {
    let settled = margins::last_settled(conn).await?;
    let unfinished = margins::unfinished(conn).await?;
    let first = unfinished.first().map_or(i64::MAX, |(day, _)| *day);
    Ok(settled.map(|day| day.min(first - 1)))
}
