//! The ledger: transfers, which are never changed or deleted.

use std::collections::BTreeMap;
use std::ops::Range;

use domain::ledger::{LedgerAccount, TransferKind};
use domain::records::{StatementLine, StatementTotals};
use domain::{ApplicationId, BatchId, Money, Timestamp, Transid};

use super::query::{Argument, Conn, Row, query};
use super::row::{self, touched};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const INSERT: Sql = Sql::in_shard(r"
        INSERT INTO transfers (debit_account, credit_account, amount, kind, application_id,
            bank_id, batch_id, balance_after, created_at{, id, shard})
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9{, $10, $shard})");
    const STATEMENT: Sql = Sql::in_shard(r"
        SELECT id, created_at, kind, amount, balance_after, message_id, batch_id, bank_id
        FROM transfers WHERE application_id = $1 AND id < $2 AND id >= $4{ AND shard = $shard}
        ORDER BY id DESC LIMIT $3");
    /// Lists either deposits or releases: `$5` is one of these kinds. The condition on both kinds
    /// repeats that of the index.
    const DEPOSITS_OR_RELEASES: Sql = Sql::in_shard(r"
        SELECT id, created_at, kind, amount, balance_after, message_id, batch_id, bank_id
        FROM transfers WHERE application_id = $1 AND id < $2 AND id >= $4
          AND kind IN ({deposit}, {release}) AND kind = $5{ AND shard = $shard}
          ORDER BY id DESC LIMIT $3");
    const CHARGES: Sql = Sql::in_shard(r"
        SELECT id, created_at, kind, amount, balance_after, message_id, batch_id, bank_id
        FROM transfers WHERE application_id = $1 AND id < $2 AND id >= $4
          AND kind = {charge}{ AND shard = $shard} ORDER BY id DESC LIMIT $3");
    /// The least ID of an application's transfers at or after a time. IDs grow with time, so a
    /// binary search between the first and the last ID finds it. An index on the times would have
    /// to be written for each charge.
    const PLACE_OF: Sql = Sql::in_shard(r"
        WITH RECURSIVE search (low, high) AS (
            SELECT CAST(0 AS BIGINT), COALESCE((
                SELECT MAX(id) + 1 FROM transfers
                WHERE application_id = $1{ AND shard = $shard}), 0)
            UNION ALL
            SELECT CASE WHEN (
                       SELECT created_at FROM transfers
                       WHERE application_id = $1 AND id >= (low + high) / 2{ AND shard = $shard}
                       ORDER BY id LIMIT 1) < $2 THEN (low + high) / 2 + 1 ELSE low END,
                   CASE WHEN (
                       SELECT created_at FROM transfers
                       WHERE application_id = $1 AND id >= (low + high) / 2{ AND shard = $shard}
                       ORDER BY id LIMIT 1) < $2 THEN high ELSE (low + high) / 2 END
            FROM search WHERE low < high)
        SELECT low AS place FROM search WHERE low >= high");
    const BALANCE_BEFORE: Sql = Sql::in_shard(r"
        SELECT balance_after FROM transfers
        WHERE application_id = $1 AND id < $2{ AND shard = $shard} ORDER BY id DESC LIMIT 1");
    const FIRST_BETWEEN: Sql = Sql::in_shard(r"
        SELECT created_at FROM transfers
        WHERE application_id = $1 AND id >= $2 AND id < $3{ AND shard = $shard}
        ORDER BY id LIMIT 1");
    /// The condition on both kinds repeats that of the index.
    const SUM_BETWEEN: Sql = Sql::in_shard(r"
        SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) AS amount FROM transfers
        WHERE application_id = $1 AND id >= $2 AND id < $3
          AND kind IN ({deposit}, {release}) AND kind = $4{ AND shard = $shard}");
    const UNMATCHED_SUM: Sql = Sql::in_shard(r"
        SELECT CAST(COALESCE(SUM(CASE WHEN credit_account = {UNMATCHED} THEN amount
                                      ELSE -amount END), 0) AS BIGINT) AS amount
        FROM transfers
        WHERE (credit_account = {UNMATCHED} OR debit_account = {UNMATCHED}){ AND shard = $shard}");
    /// `$1` is `[[debit, credit, amount, kind, application, message, balance after, batch]]`.
    const CHARGE_OR_RELEASE: Sql = Sql {
        sqlite: r"
            INSERT INTO transfers (debit_account, credit_account, amount, kind, application_id,
                message_id, balance_after, batch_id, created_at)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        postgres: r"
            -- Numbered in the order of the parameter, which is the order of the balances.
            INSERT INTO transfers (id, debit_account, credit_account, amount, kind, application_id,
                message_id, balance_after, batch_id, created_at, shard)
            SELECT a.last_transfer_id + ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY place),
                   (value ->> 0)::bigint, (value ->> 1)::bigint, (value ->> 2)::bigint,
                   (value ->> 3)::bigint, a.id, (value ->> 5)::bigint,
                   (value ->> 6)::bigint, (value ->> 7)::bigint, $2, a.shard
            FROM jsonb_array_elements($1::text::jsonb) WITH ORDINALITY AS r (value, place)
            JOIN applications a ON a.id = (value ->> 4)::bigint AND a.shard = $3",
        ..Sql::IN_SHARD
    };
    /// `$1` is `[[application, number of transfers added]]`.
    const COUNT_ON: Sql = Sql::postgres_in_shard(r"
        UPDATE applications SET last_transfer_id = last_transfer_id + (r.value ->> 1)::bigint
        FROM jsonb_array_elements($1::text::jsonb) AS r
        WHERE applications.id = (r.value ->> 0)::bigint AND applications.shard = $2");
}

/// A transfer for a deposit or a settlement.
pub struct Transfer<'a> {
    /// The number among the application's transfers. A transfer between the service's own accounts
    /// has an ID that the service generated. SQLite ignores this field and assigns its own IDs.
    pub id: i64,
    pub debit: LedgerAccount,
    pub credit: LedgerAccount,
    pub amount: Money,
    pub kind: TransferKind,
    /// The application whose statement shows the transfer, and its balance afterwards. `None`
    /// between the service's own accounts.
    pub application: Option<(ApplicationId, Money)>,
    /// The bank's ID of a deposit.
    pub bank_id: Option<&'a str>,
    pub batch_id: Option<BatchId>,
}

pub async fn insert(conn: Conn<'_>, transfer: &Transfer<'_>, now: Timestamp) -> Result<()> {
    let (application_id, balance_after) = transfer.application.unzip();
    let values = (
        transfer.debit.0,
        transfer.credit.0,
        transfer.amount,
        transfer.kind.code(),
        application_id.map_or(0, |id| id.0),
        transfer.bank_id,
        transfer.batch_id.map(|id| id.0),
        balance_after,
        now,
        transfer.id,
    );
    query(INSERT, values).execute(conn).await.map(drop)
}

/// Returns the ledger's sum of the deposits whose reference belongs to no application.
pub async fn unmatched_sum(conn: Conn<'_>) -> Result<Money> {
    query(UNMATCHED_SUM, ()).fetch_one(conn, |row| row.get("amount")).await
}

fn line(row: &Row<'_>) -> Result<StatementLine> {
    let message: Option<Transid> = row.get("message_id")?;
    let batch: Option<BatchId> = row.get("batch_id")?;
    let bank_id: Option<String> = row.get("bank_id")?;
    let subject = message
        .map(|id| id.to_string())
        .or(batch.map(|id| id.to_string()))
        .or(bank_id)
        .unwrap_or_default();
    Ok(StatementLine {
        id: row.get("id")?,
        at: row.get("created_at")?,
        kind: row::code(row, "transfers", "kind", TransferKind::from_code)?,
        amount: row.get("amount")?,
        balance_after: row.get("balance_after")?,
        subject,
    })
}

/// Returns an application's transfers with IDs in a range, newest first.
pub async fn statement(
    conn: Conn<'_>,
    application_id: ApplicationId,
    kind: Option<TransferKind>,
    ids: &Range<i64>,
    limit: i64,
) -> Result<Vec<StatementLine>> {
    let place = (application_id, ids.end, limit, ids.start);
    let listing = match kind {
        None => query(STATEMENT, place),
        Some(TransferKind::Charge) => query(CHARGES, place),
        Some(kind @ (TransferKind::Deposit | TransferKind::Release)) => {
            query(DEPOSITS_OR_RELEASES, place).bind([Argument::from(kind.code())])
        }
        // These move money between the service's own accounts.
        Some(TransferKind::Unmatched | TransferKind::Settle | TransferKind::Return) => {
            return Ok(Vec::new());
        }
    };
    listing.fetch_all(conn, line).await
}

/// Returns an ID that splits an application's transfers: those before this time have smaller IDs,
/// and all others have at least this ID.
pub async fn place_of(conn: Conn<'_>, application_id: ApplicationId, at: Timestamp) -> Result<i64> {
    query(PLACE_OF, (application_id, at)).fetch_one(conn, |row| row.get("place")).await
}

/// Returns the time of the first transfer with an ID in a range.
pub async fn first_between(
    conn: Conn<'_>,
    application_id: ApplicationId,
    ids: &Range<i64>,
) -> Result<Option<Timestamp>> {
    query(FIRST_BETWEEN, (application_id, ids.start, ids.end))
        .fetch_optional(conn, |row| row.get("created_at"))
        .await
}

/// Returns the balance before the transfer with this ID. `None` if there is no earlier transfer.
pub async fn balance_before(
    conn: Conn<'_>,
    application_id: ApplicationId,
    id: i64,
) -> Result<Option<Money>> {
    query(BALANCE_BEFORE, (application_id, id))
        .fetch_optional(conn, |row| row.get("balance_after"))
        .await
}

/// Returns the totals of the transfers with IDs in a range. Charges aren't summed up, since there
/// may be a million of them: their total follows from the balances and the other transfers.
pub async fn totals(
    conn: Conn<'_>,
    application_id: ApplicationId,
    ids: &Range<i64>,
) -> Result<StatementTotals> {
    let opening = balance_before(conn, application_id, ids.start).await?;
    let closing = balance_before(conn, application_id, ids.end).await?;
    let (opening, closing) = (opening.unwrap_or_default(), closing.unwrap_or_default());
    let mut sums = [Money::ZERO; 2];
    let kinds = [TransferKind::Deposit, TransferKind::Release];
    for (sum, kind) in sums.iter_mut().zip(kinds) {
        let place = (application_id, ids.start, ids.end, kind.code());
        let found = query(SUM_BETWEEN, place).fetch_one(conn, |row| row.get("amount"));
        *sum = found.await?;
    }
    let [deposits, releases] = sums;
    let charges = opening.micros() + deposits.micros() + releases.micros() - closing.micros();
    Ok(StatementTotals {
        opening,
        deposits,
        charges: Money::from_micros(charges),
        releases,
        closing,
    })
}

#[derive(Clone, Copy)]
pub enum Subject {
    Message(Transid),
    Batch(BatchId),
}

impl Subject {
    fn ids(self) -> (Option<i64>, Option<i64>) {
        match self {
            Self::Message(id) => (Some(id.0), None),
            Self::Batch(id) => (None, Some(id.0)),
        }
    }
}

/// A charge, a release or a reservation.
pub struct MessageTransfer {
    pub debit: LedgerAccount,
    pub credit: LedgerAccount,
    pub amount: Money,
    pub kind: TransferKind,
    pub subject: Subject,
    /// The application whose statement shows the transfer, and its balance afterwards.
    pub application: Option<(ApplicationId, Money)>,
}

/// Stores transfers of messages and batches, in the order of the balances. On PostgreSQL, the
/// transaction must have locked the applications.
pub async fn insert_of_messages(
    conn: Conn<'_>,
    transfers: &[MessageTransfer],
    now: Timestamp,
) -> Result<()> {
    let rows = transfers.iter().map(|t| {
        let (message, batch) = t.subject.ids();
        let (application, balance) = t.application.unzip();
        let (debit, credit, kind) = (t.debit.0, t.credit.0, t.kind.code());
        (debit, credit, t.amount, kind, application, message, balance, batch)
    });
    let written = query(CHARGE_OR_RELEASE, now).execute_each(conn, rows).await?;
    touched("transfers", transfers.len(), written)?;
    if conn.dialect().is_shared() {
        let mut counts: BTreeMap<ApplicationId, i64> = BTreeMap::new();
        for (application, _) in transfers.iter().filter_map(|t| t.application) {
            *counts.entry(application).or_default() += 1;
        }
        let counted =
            query(COUNT_ON, ()).execute_each(conn, counts.iter().map(|(id, n)| (*id, *n))).await?;
        touched("applications", counts.len(), counted)?;
    }
    Ok(())
}
