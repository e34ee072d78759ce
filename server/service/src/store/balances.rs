//! Balances of applications: what sends take, and what is given back.

use domain::{ApplicationId, Money, Reference};

use super::applications::KeyRow;
use super::query::{Connection, query};
use super::row::{json, touched};
use super::sql::{Sql, statements};
use super::transaction::WriteTx;
use crate::error::Result;

statements! {
    /// In the order of the ids, whoever asks.
    const LOCK: Sql = Sql::postgres(r"
        SELECT COUNT(*) AS n
        FROM (
            SELECT 1
            FROM applications
            WHERE id = ANY (
                ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb)))
              OR reference = ANY (
                  ARRAY(SELECT value FROM jsonb_array_elements_text($2::text::jsonb)))
            ORDER BY id FOR UPDATE) a");
    const BALANCES: Sql = Sql {
        sqlite: r"
            SELECT id, balance FROM applications WHERE id IN (SELECT value FROM json_each($1))",
        postgres: r"
            SELECT id, balance
            FROM applications
            WHERE id = ANY (
                ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb)))
            ORDER BY id FOR UPDATE",
    };
    /// `[[id, balance, test balance, test day, balance before, status, live hash, test hash, sender
    /// state, test balance before]]`.
    const CHARGE: Sql = Sql {
        sqlite: r"
            -- The row can't have changed since it was read in this transaction: nobody else writes
            -- meanwhile.
            UPDATE applications SET balance = ?2, test_balance = ?3, test_day = ?4 WHERE id = ?1",
        postgres: r"
            -- What the charge was decided by must still stand there.
            UPDATE applications SET balance = (r.value ->> 1)::bigint,
                test_balance = (r.value ->> 2)::bigint, test_day = (r.value ->> 3)::bigint
            FROM jsonb_array_elements($1::text::jsonb) AS r
            WHERE applications.id = (r.value ->> 0)::bigint
              AND applications.balance = (r.value ->> 4)::bigint
              AND applications.status = r.value ->> 5 AND applications.live_hash = r.value ->> 6
              AND applications.test_hash = r.value ->> 7
              AND applications.sender_state = r.value ->> 8
              AND applications.test_balance = (r.value ->> 9)::bigint",
    };
    /// `[[id, balance before, balance, play money to give back]]`. Play money never exceeds a
    /// day's, also when yesterday's message is given back today.
    const SETTLE: Sql = Sql {
        sqlite: r"
            UPDATE applications SET balance = r.value ->> 2,
                test_balance = MIN(test_balance + (r.value ->> 3), $2)
            FROM json_each($1) AS r
            WHERE applications.id = r.value ->> 0 AND applications.balance = r.value ->> 1",
        postgres: r"
            UPDATE applications SET balance = (r.value ->> 2)::bigint,
                test_balance = LEAST(test_balance + (r.value ->> 3)::bigint, $2)
            FROM jsonb_array_elements($1::text::jsonb) AS r
            WHERE applications.id = (r.value ->> 0)::bigint
              AND applications.balance = (r.value ->> 1)::bigint",
    };
}

/// Locks applications, by id and by reference, in one order. Nothing where nobody else writes.
pub(crate) async fn lock(
    tx: &mut WriteTx<'_>,
    ids: &[ApplicationId],
    references: &[Reference],
) -> Result<()> {
    if tx.must_lock() {
        let locking = query(LOCK, (json(&ids)?, json(&references)?));
        locking.finds(tx).await?;
    }
    Ok(())
}

/// What an application has.
pub(crate) struct Balance {
    pub(crate) application_id: ApplicationId,
    pub(crate) balance: Money,
}

/// Balances of these applications; duplicates are fine.
pub(crate) async fn of(conn: &mut dyn Connection, ids: &[ApplicationId]) -> Result<Vec<Balance>> {
    query(BALANCES, json(&ids)?)
        .fetch_all(conn, |row| {
            Ok(Balance {
                application_id: row.get("id")?,
                balance: row.get("balance")?,
            })
        })
        .await
}

/// An application that gets money back.
pub(crate) struct SettledApplication {
    pub(crate) id: ApplicationId,
    pub(crate) before: Money,
    pub(crate) balance: Money,
    /// Play money to add.
    pub(crate) play: Money,
}

/// Writes the balances of applications that get money back.
pub(crate) async fn settle(
    conn: &mut dyn Connection,
    settled: &[SettledApplication],
    play_money_max: Money,
) -> Result<()> {
    let rows: Vec<_> = settled
        .iter()
        .map(|s| (s.id, s.before.micros(), s.balance.micros(), s.play.micros()))
        .collect();
    let settling = query(SETTLE, (json(&rows)?, play_money_max));
    touched("applications", rows.len(), settling.execute(conn).await?)
}

/// An application whose money a batch of sends changed.
pub(crate) struct ChargedApplication {
    /// As it was read in this transaction.
    pub(crate) before: KeyRow,
    pub(crate) balance: Money,
    pub(crate) test_balance: Money,
    pub(crate) test_day: i64,
}

/// Writes the balances, where key, status and balance still are what they were.
pub(crate) async fn charge(
    conn: &mut dyn Connection,
    changed: &[ChargedApplication],
) -> Result<()> {
    let rows = changed.iter().map(|c| {
        let before = &c.before;
        (
            before.id,
            c.balance,
            c.test_balance,
            c.test_day,
            before.balance,
            before.status.as_str(),
            &before.live_hash,
            &before.test_hash,
            before.sender_state.as_str(),
            before.test_balance,
        )
    });
    let written = query(CHARGE, ()).execute_each(conn, rows).await?;
    touched("applications", changed.len(), written)
}
