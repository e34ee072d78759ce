//! An application's statement: its transfers, and their totals by day and month.

use std::ops::Range;

use domain::ledger::TransferKind;
use domain::records::{Paged, StatementDay, StatementLine, StatementMonth, StatementTotals};
use domain::timestamp::DAY_MS;
use domain::{ApplicationId, Month, Reference, Timestamp};

use super::owned;
use crate::Applications;
use store::error::{Refusal, Result};
use store::query::Conn;
use store::transfers;

/// The maximum number of lines of a statement that are read at once.
const LINES_MAX: i64 = 1000;

/// Selects the lines of a statement.
#[derive(Clone, Copy, Debug, Default)]
pub struct StatementFilter<'a> {
    pub kind: Option<TransferKind>,
    /// Only transfers at or after this time.
    pub from: Option<Timestamp>,
    /// Only transfers before this time.
    pub to: Option<Timestamp>,
    /// The `next` of an earlier page.
    pub cursor: Option<&'a str>,
    /// The maximum number of lines on the page, 1 to 1,000.
    pub limit: i64,
}

impl Applications<'_> {
    /// Returns a page of an application's transfers, newest first.
    ///
    /// # Errors
    /// `NoSuchApplication`, `InvalidCursor`.
    pub async fn statement(
        &self,
        account_id: i64,
        reference: Reference,
        filter: StatementFilter<'_>,
    ) -> Result<Paged<StatementLine>> {
        let before = match filter.cursor {
            Some(text) => text.parse().map_err(|_| Refusal::InvalidCursor)?,
            None => i64::MAX,
        };
        let limit = filter.limit.clamp(1, LINES_MAX);
        let mut conn = self.read_of(reference).await?;
        let row = owned(&mut conn, account_id, reference).await?;
        let mut ids = 0..before;
        if let Some(from) = filter.from {
            ids.start = transfers::place_of(&mut conn, row.id, from).await?;
        }
        if let Some(to) = filter.to {
            let end = transfers::place_of(&mut conn, row.id, to).await?;
            ids.end = ids.end.min(end);
        }
        let lines = transfers::statement(&mut conn, row.id, filter.kind, &ids, limit + 1).await?;
        Ok(Paged::of(lines, limit, |line| line.id.to_string()))
    }

    /// Returns a month of an application's statement, by day.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn statement_month(
        &self,
        account_id: i64,
        reference: Reference,
        month: Month,
    ) -> Result<StatementMonth> {
        let mut conn = self.read_of(reference).await?;
        let id = owned(&mut conn, account_id, reference).await?.id;
        let start = transfers::place_of(&mut conn, id, month.start()).await?;
        let end = transfers::place_of(&mut conn, id, month.next().start()).await?;
        let before = transfers::balance_before(&mut conn, id, start).await?;
        let days = days(&mut conn, id, start..end).await?;
        let mut totals = StatementTotals::of_nothing(before.unwrap_or_default());
        for day in days.iter().rev() {
            totals.add(&day.totals);
        }
        Ok(StatementMonth { month, totals, days, has_older: before.is_some() })
    }
}

/// Returns the totals of the transfers in a range of IDs by day, newest first. Days without
/// transfers are left out.
async fn days(conn: Conn<'_>, id: ApplicationId, mut ids: Range<i64>) -> Result<Vec<StatementDay>> {
    let mut days = Vec::new();
    while let Some(first) = transfers::first_between(conn, id, &ids).await? {
        let day = Timestamp::of_day(first.day());
        let next = transfers::place_of(conn, id, day.plus_ms(DAY_MS)).await?;
        // If the clock was set back, the times of the transfers may be out of order.
        let next = next.clamp(ids.start + 1, ids.end);
        let totals = transfers::totals(conn, id, &(ids.start..next)).await?;
        days.push(StatementDay { day, totals });
        ids.start = next;
    }
    days.reverse();
    Ok(days)
}
