//! The data folders of the processes that serve a PostgreSQL database. A process first stores a
//! time in the row of its folder, and then the same time in a file of the folder. A database whose
//! row is older than the file has lost commits: it was restored from a backup, or a standby that
//! lacked the commits took over.

use domain::Timestamp;

use super::query::{Conn, query};
use super::sql::{Sql, statements};
use crate::error::Result;

/// The row with the time of the last hold. The hold covers all commits that were lost before it.
const HOLD: i64 = 0;

statements! {
    const HAS: Sql = Sql::postgres(r"
        SELECT 1 AS found FROM data_folders WHERE id IN ($1, 0) AND used_at >= $2 LIMIT 1");
    const NOTE: Sql = Sql::postgres(r"
        INSERT INTO data_folders (id, used_at) VALUES ($1, $2)
        ON CONFLICT (id) DO UPDATE SET used_at = GREATEST(data_folders.used_at, $2)");
    const FORGET: Sql = Sql::postgres("DELETE FROM data_folders WHERE used_at < $1");
}

/// Returns whether the database still has the commit that a folder's process made at this time, or
/// was held since.
pub async fn has(conn: Conn<'_>, id: i64, at: Timestamp) -> Result<bool> {
    query(HAS, (id, at)).finds(conn).await
}

/// Stores that a folder is used now.
pub async fn note(conn: Conn<'_>, id: i64, now: Timestamp) -> Result<()> {
    query(NOTE, (id, now)).execute(conn).await.map(drop)
}

/// Stores when a hold began.
pub(crate) async fn note_hold(conn: Conn<'_>, since: Timestamp) -> Result<()> {
    if !conn.dialect().is_shared() {
        return Ok(());
    }
    note(conn, HOLD, since).await
}

/// Deletes the folders that weren't used since this time.
pub async fn forget(conn: Conn<'_>, before: Timestamp) -> Result<()> {
    query(FORGET, before).execute(conn).await.map(drop)
}
