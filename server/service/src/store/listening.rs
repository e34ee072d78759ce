//! PostgreSQL's notifications.

use sqlx::AnyConnection;
use sqlx::postgres::PgListener;

use crate::error::{Result, timed_out};

/// What the processes of an installation listen to.
const CHANNEL: &str = "heliograph";
const NOTIFY: &str = "SELECT 1::bigint AS told FROM (SELECT pg_notify('heliograph', $1)) n";

/// Hears what others say.
pub(crate) struct Listener(PgListener);

impl Listener {
    pub(crate) async fn connect(url: &str) -> std::result::Result<Self, sqlx::Error> {
        let mut listener = PgListener::connect(url).await?;
        // A connection that was lost is worth a word, and a pause.
        listener.eager_reconnect(false);
        listener.listen(CHANNEL).await?;
        Ok(Self(listener))
    }

    /// Waits for the next word. An error says that some may have been missed.
    pub(crate) async fn next(&mut self) -> std::result::Result<String, sqlx::Error> {
        match self.0.try_recv().await? {
            Some(heard) => Ok(heard.payload().to_owned()),
            None => Err(timed_out("listening")),
        }
    }
}

/// Says something to everybody.
pub(crate) async fn notify(conn: &mut AnyConnection, payload: &str) -> Result<()> {
    sqlx::query(NOTIFY).bind(payload).fetch_one(conn).await?;
    Ok(())
}
