//! Lists that staff keep: a row for each list that was changed.

use super::query::{Connection, query};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const LINES: Sql = Sql::same("SELECT lines FROM staff_lists WHERE list = $1");
    const SET: Sql = Sql::same(r"
        INSERT INTO staff_lists (list, lines)
        VALUES ($1, $2)
        ON CONFLICT (list) DO UPDATE SET lines = $2");
}

/// The entries of a list, a line each; `None` for one that was never changed.
pub(crate) async fn lines(conn: &mut dyn Connection, list: &str) -> Result<Option<String>> {
    query(LINES, list)
        .fetch_optional(conn, |row| row.get("lines"))
        .await
}

pub(crate) async fn set(conn: &mut dyn Connection, list: &str, lines: &str) -> Result<()> {
    query(SET, (list, lines)).execute(conn).await.map(drop)
}
