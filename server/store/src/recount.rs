//! The recount of the newest transfers of an application while the service runs.

use domain::{ApplicationId, Money, Reference};

use super::installation;
use super::query::{Conn, query};
use super::row;
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const AFTER: Sql = Sql::in_shard(r"
        SELECT id, reference FROM applications
        WHERE id > $1{ AND shard = $shard} ORDER BY id LIMIT $2");
    /// A charge for a message that isn't dropped has the cost of the message, or -1 if there is no
    /// such message.
    const NEWEST: Sql = Sql::in_shard(r"
        SELECT a.balance, t.id, t.balance_after,
               CASE WHEN t.credit_account = $1 THEN t.amount ELSE -t.amount END AS change,
               CASE WHEN t.kind = {charge} AND t.message_id >= $3
                    THEN COALESCE(m.cost, -1) END AS cost
        FROM applications a
        LEFT JOIN transfers t ON t.application_id = $1{ AND t.shard = $shard}
        LEFT JOIN messages m ON m.id = t.message_id{ AND m.shard = $shard}
        WHERE a.id = $1{ AND a.shard = $shard} ORDER BY t.id DESC LIMIT $2");
}

/// The balance of an application and its newest transfers, newest first.
pub struct Newest {
    pub balance: Money,
    pub transfers: Vec<Recounted>,
}

pub struct Recounted {
    pub id: i64,
    pub change: i64,
    pub balance_after: Option<i64>,
    /// The cost in micro-units of the message that a charge pays for, or -1 if it is missing.
    pub cost: Option<i64>,
}

/// Returns the applications of a shard that follow one, by ID.
pub async fn after(
    conn: Conn<'_>,
    id: ApplicationId,
    limit: i64,
) -> Result<Vec<(ApplicationId, Reference)>> {
    query(AFTER, (id, limit))
        .fetch_all(conn, |row| Ok((row.get("id")?, row::reference(row)?)))
        .await
}

/// Returns an application's balance and newest transfers as one snapshot has them. A message that
/// is dropped during the call seems to be missing.
pub async fn newest(conn: Conn<'_>, id: ApplicationId, limit: i64) -> Result<Newest> {
    let low = installation::history_low(&mut *conn).await?;
    let mut balance = Money::ZERO;
    let rows = query(NEWEST, (id, limit, low)).fetch_all(conn, |row| {
        let transfer: Option<i64> = row.get("id")?;
        let Some(id) = transfer else {
            return Ok((row.get("balance")?, None));
        };
        let transfer = Recounted {
            id,
            change: row.get("change")?,
            balance_after: row.get("balance_after")?,
            cost: row.get("cost")?,
        };
        Ok((row.get("balance")?, Some(transfer)))
    });
    let mut transfers = Vec::new();
    for (of_application, transfer) in rows.await? {
        balance = of_application;
        transfers.extend(transfer);
    }
    Ok(Newest { balance, transfers })
}
