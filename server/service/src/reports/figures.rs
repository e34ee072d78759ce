//! Figures of an account's messages by hour or by day, in any time zone.

use std::collections::BTreeMap;

use domain::quarter::{Figures, QUARTER_MS, QuarterRange};
use domain::records::{AlarmRecord, BatchRecord, ScheduledRows};
use domain::timestamp::DAY_MS;
use domain::{ApplicationId, EventStream, KeyKind, Reference};

use super::settled::Days;
use super::tests;
use crate::Messages;
use crate::applications::alarms::SHOWN_MAX;
use crate::applications::chosen;
use store::error::{Refusal, Result};
use store::query::Conn;
use store::{alarms, batches, quarters};

const DAY_QUARTERS: i64 = DAY_MS / QUARTER_MS;
/// How long after its end a day counts as settled, in milliseconds. By then its messages are
/// normally final: they take up to 48 hours, and an upload's rows become messages some time after
/// its acceptance.
const SETTLED_MS: i64 = 3 * DAY_MS;

/// An application's figures by period. Periods are counted since 1970-01-01 in the range's zone.
/// Periods without messages are left out.
pub type FiguresByPeriod = BTreeMap<i64, Figures>;

/// The contents of an application's overview.
pub struct Overview {
    pub figures: FiguresByPeriod,
    /// The newest batches, newest first.
    pub batches: Vec<BatchRecord>,
    /// The rows of scheduled batches, which the figures leave out.
    pub scheduled: ScheduledRows,
    /// The alarms that the owner hasn't marked as read, newest first.
    pub alarms: Vec<AlarmRecord>,
}

impl Messages<'_> {
    /// Returns the figures of messages that were accepted within `ranges`, for one of an account's
    /// applications or for each of them, and for one kind of key or both.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn account_figures(
        &self,
        account_id: i64,
        reference: Option<Reference>,
        key: Option<KeyKind>,
        ranges: &[QuarterRange],
    ) -> Result<Vec<(Reference, FiguresByPeriod)>> {
        let mut conn = self.read_of_account(account_id).await?;
        let mut figures = Vec::new();
        for owned in chosen(&mut conn, account_id, reference).await? {
            let mut periods = BTreeMap::new();
            for test in tests(key) {
                for range in ranges {
                    let whose = (owned.id, test);
                    self.add_range(&mut conn, whose, *range, &mut periods).await?;
                }
            }
            figures.push((owned.reference, periods));
        }
        Ok(figures)
    }

    /// Returns the contents of an application's overview, for one of the account's applications.
    /// Everything is about the live key. `batches` is the maximum number of batches.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn overview(
        &self,
        account_id: i64,
        reference: Reference,
        ranges: &[QuarterRange],
        batches: i64,
    ) -> Result<Overview> {
        let mut conn = self.read_of_account(account_id).await?;
        let owned = chosen(&mut conn, account_id, Some(reference)).await?.pop();
        let id = owned.ok_or(Refusal::NoSuchApplication)?.id;
        let mut figures = BTreeMap::new();
        for range in ranges {
            self.add_range(&mut conn, (id, false), *range, &mut figures).await?;
        }
        let stream = EventStream { application_id: id, test: false };
        let (scheduled, ..) = batches::scheduled_rows(&mut conn, stream, self.now()).await?;
        Ok(Overview {
            figures,
            scheduled,
            batches: batches::list(&mut conn, id, false, i64::MAX, None, batches).await?,
            alarms: alarms::unread(&mut conn, id, SHOWN_MAX).await?,
        })
    }

    /// Adds the figures of a range's periods to `periods`. Uses cached figures for settled days.
    async fn add_range(
        &self,
        conn: Conn<'_>,
        whose: (ApplicationId, bool),
        range: QuarterRange,
        periods: &mut FiguresByPeriod,
    ) -> Result<()> {
        if range.length != DAY_QUARTERS {
            return quarters::add_periods(conn, whose, range, periods).await;
        }
        let of = Days { application_id: whose.0, test: whose.1, ahead: range.ahead };
        let settled = self.now().plus_ms(-SETTLED_MS).quarter().min(range.below);
        // The settled days that lie entirely in the range.
        let first = (range.first + range.ahead + DAY_QUARTERS - 1).div_euclid(DAY_QUARTERS);
        let below = (settled + range.ahead).div_euclid(DAY_QUARTERS);
        let known = self.inner.settled_days.known(of, first, below);
        let mut found = FiguresByPeriod::new();
        let mut unknown = range;
        for (day, figures) in (first..).zip(&known) {
            if figures.accepted > 0 {
                found.insert(day, *figures);
            }
            unknown.first = (day + 1) * DAY_QUARTERS - range.ahead;
        }
        if !known.is_empty() {
            let before = QuarterRange { below: first * DAY_QUARTERS - range.ahead, ..range };
            if before.first < before.below {
                quarters::add_periods(conn, whose, before, &mut found).await?;
            }
        }
        quarters::add_periods(conn, whose, unknown, &mut found).await?;
        for day in first + known.len().cast_signed() as i64..below {
            let figures = found.get(&day).copied().unwrap_or_default();
            self.inner.settled_days.keep(of, day, &figures);
        }
        for (day, figures) in &found {
            periods.entry(*day).or_default().add(figures);
        }
        Ok(())
    }
}
