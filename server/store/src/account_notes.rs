//! Notes that staff write about accounts.

use domain::Timestamp;
use domain::support::NoteRecord;

use super::audit::Actor;
use super::query::{Conn, Row, query};
use super::row::from_row;
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const INSERT: Sql = Sql::same(r"
        INSERT INTO account_notes (account_id, at, author, text)
        VALUES ($1, $2, $3, $4)
        RETURNING id, at, author, text");
    const OF_ACCOUNT: Sql = Sql::same(r"
        SELECT id, at, author, text FROM account_notes WHERE account_id = $1 ORDER BY id DESC");
}

fn note(row: &Row<'_>) -> Result<NoteRecord> {
    from_row!(row => NoteRecord { id, at, author, text })
}

pub async fn insert(
    conn: Conn<'_>,
    account_id: i64,
    author: &Actor,
    text: &str,
    now: Timestamp,
) -> Result<NoteRecord> {
    query(INSERT, (account_id, now, author.to_string(), text)).fetch_one(conn, note).await
}

/// Returns the notes on an account, newest first.
pub async fn of_account(conn: Conn<'_>, account_id: i64) -> Result<Vec<NoteRecord>> {
    query(OF_ACCOUNT, account_id).fetch_all(conn, note).await
}
