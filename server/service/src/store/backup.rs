//! A copy of an embedded database.

use sqlx::AnyConnection;

use super::statements;
use crate::error::Result;

statements! {
    /// SQLite alone: a consistent copy in one read, without stopping anybody.
    COPY = "VACUUM INTO $1";
}

pub(crate) async fn copy(conn: &mut AnyConnection, file: &str) -> Result<()> {
    sqlx::query(COPY).bind(file).execute(conn).await?;
    Ok(())
}
