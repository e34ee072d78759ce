//! Adds released charges back to the balances of applications.

use std::collections::BTreeSet;

use domain::{ApplicationId, Money};

use super::query::{Conn, Row, query};
use super::row::touched;
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const BALANCES: Sql = Sql {
        sqlite: r"
            SELECT id, balance FROM applications WHERE id = ?1",
        postgres: r"
            SELECT id, balance FROM applications
            WHERE id = ANY ({ids}) AND shard = $2 ORDER BY id FOR UPDATE",
        ..Sql::IN_SHARD
    };
    /// `$1` is `[[ID, balance before, balance, amount to add to the test balance]]`. The test
    /// balance never exceeds its daily maximum, even if the price of yesterday's message is
    /// released today.
    const SETTLE: Sql = Sql {
        sqlite: r"
            UPDATE applications SET balance = ?3, test_balance = MIN(test_balance + ?4, ?5)
            WHERE id = ?1 AND balance = ?2",
        postgres: r"
            UPDATE applications SET balance = (r.value ->> 2)::bigint,
                test_balance = LEAST(test_balance + (r.value ->> 3)::bigint, $2)
            FROM jsonb_array_elements($1::text::jsonb) AS r
            WHERE applications.id = (r.value ->> 0)::bigint
              AND applications.balance = (r.value ->> 1)::bigint AND applications.shard = $3",
        ..Sql::IN_SHARD
    };
}

pub struct Balance {
    pub application_id: ApplicationId,
    pub balance: Money,
}

/// Returns the balances of these applications. An ID may occur twice.
pub async fn of(conn: Conn<'_>, ids: &[ApplicationId]) -> Result<Vec<Balance>> {
    let read = |row: &Row<'_>| {
        Ok(Balance { application_id: row.get("id")?, balance: row.get("balance")? })
    };
    let distinct: BTreeSet<ApplicationId> = ids.iter().copied().collect();
    query(BALANCES, ()).fetch_each(conn, distinct, read).await
}

/// An application with charges to release.
pub struct SettledApplication {
    pub id: ApplicationId,
    pub before: Money,
    pub balance: Money,
    /// The amount that is added to the test balance.
    pub test_money: Money,
}

/// Writes the balances of applications with released charges.
pub async fn settle(
    conn: Conn<'_>,
    settled: &[SettledApplication],
    test_money_max: Money,
) -> Result<()> {
    let rows = settled.iter().map(|s| (s.id, s.before, s.balance, s.test_money));
    let written = query(SETTLE, test_money_max).execute_each(conn, rows).await?;
    touched("applications", settled.len(), written)
}
