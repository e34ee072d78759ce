//! Lists that staff edit. A list has a row once it has been changed.

use super::query::{Conn, query};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const LINES: Sql = Sql::same("SELECT lines FROM staff_lists WHERE list = $1");
    const SET: Sql = Sql::same(r"
        INSERT INTO staff_lists (list, lines)
        VALUES ($1, $2)
        ON CONFLICT (list) DO UPDATE SET lines = $2");
}

/// Returns the entries of a list, one per line, or `None` if the list was never changed.
pub async fn lines(conn: Conn<'_>, list: &str) -> Result<Option<String>> {
    query(LINES, list).fetch_optional(conn, |row| row.get("lines")).await
}

pub async fn set(conn: Conn<'_>, list: &str, lines: &str) -> Result<()> {
    query(SET, (list, lines)).execute(conn).await.map(drop)
}
