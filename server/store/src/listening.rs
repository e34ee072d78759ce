//! PostgreSQL's notifications.

use sqlx::postgres::PgListener;

use super::query::{Conn, query};
use super::sql::Sql;
use crate::error::{Result, timed_out};

/// The channel that all processes of an installation listen to.
const CHANNEL: &str = "heliograph";
const NOTIFY: Sql = Sql::postgres("SELECT pg_notify('heliograph', $1)");

/// Receives the notifications of other processes.
pub struct Listener(PgListener);

impl Listener {
    pub async fn connect(url: &str) -> std::result::Result<Self, sqlx::Error> {
        let mut listener = PgListener::connect(url).await?;
        // If the connection is lost, `next` returns an error, and its caller reconnects after a
        // pause.
        listener.eager_reconnect(false);
        listener.listen(CHANNEL).await?;
        Ok(Self(listener))
    }

    /// Waits for the next notification.
    ///
    /// # Errors
    /// When the connection is lost. Notifications may then have been missed.
    pub async fn next(&mut self) -> std::result::Result<String, sqlx::Error> {
        match self.0.try_recv().await? {
            Some(heard) => Ok(heard.payload().to_owned()),
            None => Err(timed_out("listening")),
        }
    }
}

/// Notifies all processes, including this one.
pub async fn notify(conn: Conn<'_>, payload: &str) -> Result<()> {
    query(NOTIFY, payload).execute(conn).await.map(drop)
}
