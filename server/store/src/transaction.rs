//! Write transactions and their commits.

use std::time::Duration;

use domain::ids::Shard;
use domain::{EventStream, EventType, Timestamp, Transid};
use sqlx::postgres::PgConnection;
use sqlx::{Postgres, Transaction};

use super::dialect::{Outcome, TransactionName};
use super::file::FileConnection;
use super::gate::Permit;
use super::halt::Halt;
use super::query::{Argument, Backend, Connection};
use super::readers::Readers;
use super::sql::Dialect;
use super::tally::Tally;
use crate::error::{Fault, Result, Uncertain, is_cut, timed_out};

/// The maximum duration of a commit. After that, the connection counts as lost.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum time to query the outcome of a commit whose connection was lost.
pub(crate) const OUTCOME_TIMEOUT: Duration = Duration::from_secs(40);
/// The pause between two queries for the outcome of a commit.
pub(crate) const OUTCOME_PAUSE: Duration = Duration::from_millis(100);

/// A write transaction. Dropping it rolls it back.
pub struct Tx<'a> {
    pub(crate) way: Way,
    /// The changes to the counts, which are written before the commit.
    pub tally: Tally,
    /// The shard whose rows the transaction reads and writes. `None` if no shard was set.
    pub(crate) shard: Option<Shard>,
    /// The network address of the requesting client, for the audit log.
    pub(crate) client_address: Option<String>,
    pub(crate) dialect: Dialect,
    pub(crate) is_distributed: bool,
    pub(crate) halt: &'a Halt,
    /// Connections to query the outcome of a commit that got no answer.
    pub(crate) readers: &'a Readers,
    /// Keeps other verbs of this process from starting while the transaction exists.
    pub(crate) verb: Option<tokio::sync::OwnedMutexGuard<()>>,
}

/// How a transaction reaches the database.
pub enum Way {
    /// The connection that writes to a SQLite file. It belongs to the permit.
    File(Permit),
    /// A connection of the pool. The permit is the last field, so that the connection returns to
    /// the pool before the next transaction starts.
    Pool(
        Option<Box<Transaction<'static, Postgres>>>,
        #[expect(dead_code, reason = "held until it is dropped")] Permit,
    ),
}

/// The result of a commit.
pub enum Committed {
    Yes,
    /// The commit got no answer. Its outcome must be queried.
    Unanswered(Unanswered),
}

/// A transaction whose commit got no answer.
pub struct Unanswered {
    transaction: TransactionName,
    error: sqlx::Error,
}

impl Tx<'_> {
    /// Sets the shard whose rows the transaction reads and writes from now on.
    pub fn at(&mut self, shard: Shard) {
        self.shard = Some(shard);
    }

    /// Sets the network address of the client for the audit log. An empty address means that there
    /// is no client.
    pub fn asked_from(&mut self, address: &str) {
        self.client_address = (!address.is_empty()).then(|| address.to_owned());
    }

    /// Adds an event that isn't about a message to streams of an application. The transaction
    /// stores it just before its commit. `data` is JSON.
    pub fn cause(&mut self, streams: &[EventStream], kind: EventType, data: &str, now: Timestamp) {
        self.tally.cause(self.shard, streams, (kind, data), now);
    }

    /// Returns the parameters that limit a statement to the partitions of these messages: the least
    /// and the greatest ID. Returns none on SQLite, or if there are no messages.
    pub fn among(&self, ids: &[Transid]) -> Vec<Argument<'static>> {
        let Some(first) = ids.first().filter(|_| self.dialect.is_shared()) else {
            return Vec::new();
        };
        let least = ids.iter().fold(*first, |least, id| least.min(*id));
        let greatest = ids.iter().fold(*first, |greatest, id| greatest.max(*id));
        vec![least.into(), greatest.into()]
    }

    /// Returns whether other transactions may write at the same time. If so, this transaction must
    /// lock the rows that its decisions depend on.
    pub const fn must_lock(&self) -> bool {
        self.dialect.is_shared()
    }

    /// Adds the changes in the tally to the counts in the database.
    pub async fn write_counts(&mut self) -> Result<()> {
        let tally = self.tally.take();
        if tally.is_empty() {
            return Ok(());
        }
        tally.write(self).await
    }

    /// Commits the transaction.
    ///
    /// # Errors
    /// `Failed`: nothing was stored. `Uncertain`: the transaction may or may not be stored. A
    /// failed sync of SQLite's log is `Uncertain` too. The store then accepts no more writes, and
    /// the process should stop.
    pub async fn commit(self) -> Result<()> {
        let readers = self.readers;
        match self.try_commit().await? {
            Committed::Yes => Ok(()),
            Committed::Unanswered(unanswered) => Box::pin(unanswered.outcome(readers)).await,
        }
    }

    /// Like [`Tx::commit`], but doesn't query the outcome of a commit that got no answer.
    pub async fn try_commit(mut self) -> Result<Committed> {
        self.write_counts().await?;
        let halt = self.halt;
        match &mut self.way {
            Way::File(permit) => {
                let Some(file) = permit.file() else {
                    return Err(Fault::Stopped.into());
                };
                let committed = file.commit();
                committed.map_err(|error| {
                    halt.note(&error);
                    error.of_commit()
                })?;
                // Failures from here on don't affect the stored transaction.
                if let Err(error) = file.begin_to_move_log() {
                    halt.note(&error);
                    tracing::error!(
                        detail = ?error,
                        "the log can't be moved into the database's file"
                    );
                }
                Ok(Committed::Yes)
            }
            Way::Pool(tx, _) => {
                let mut tx = tx.take().ok_or(Fault::Stopped)?;
                let distributed = self.is_distributed;
                let known_as = name(distributed, self.shard, &mut tx).await?;
                let committed = tokio::time::timeout(COMMIT_TIMEOUT, Box::pin(tx.commit())).await;
                committed_on_server(
                    committed.unwrap_or_else(|_| Err(timed_out("a commit"))),
                    known_as,
                    distributed,
                )
            }
        }
    }

    /// Returns how many bytes of SQLite's log aren't in the database file yet. 0 on PostgreSQL.
    pub fn log_bytes(&mut self) -> u64 {
        match &mut self.way {
            Way::File(permit) => permit.file().map_or(0, |file| file.log_bytes()),
            Way::Pool(..) => 0,
        }
    }
}

impl Drop for Tx<'_> {
    fn drop(&mut self) {
        if let Way::File(permit) = &mut self.way
            && let Some(file) = permit.file()
        {
            file.end();
        }
    }
}

impl Connection for Tx<'_> {
    fn backend(&mut self) -> Backend<'_> {
        match &mut self.way {
            Way::File(permit) => Backend::File(permit.file().map(FileConnection::conn)),
            Way::Pool(tx, _) => {
                tx.as_deref_mut().map_or(Backend::File(None), |tx| Backend::Postgres(tx))
            }
        }
    }

    fn shard(&self) -> Option<Shard> {
        self.shard
    }

    fn client_address(&self) -> Option<&str> {
        self.client_address.as_deref()
    }
}

impl Unanswered {
    /// Queries the outcome of the transaction, which the server may still be committing.
    ///
    /// # Errors
    /// `Failed`: nothing was stored. `Uncertain`: the transaction may or may not be stored.
    pub(crate) async fn outcome(self, readers: &Readers) -> Result<()> {
        let Self { transaction, error } = self;
        let asked = tokio::time::timeout(OUTCOME_TIMEOUT, async {
            loop {
                let ask = async {
                    let mut conn = readers.acquire().await?;
                    transaction.outcome(&mut conn).await
                };
                match ask.await {
                    Ok(Outcome::UnderWay) => {}
                    Ok(outcome) => return outcome,
                    Err(error) => {
                        tracing::debug!(
                            detail = ?error,
                            "the outcome of a commit can't be queried yet"
                        );
                    }
                }
                tokio::time::sleep(OUTCOME_PAUSE).await;
            }
        });
        match asked.await {
            Ok(Outcome::Committed) => Ok(()),
            Ok(Outcome::Nothing) => Err(Fault::NotCommitted(error).into()),
            Ok(Outcome::Forgotten) => Err(Uncertain::Forgotten(error).into()),
            Ok(Outcome::UnderWay) | Err(_) => Err(Uncertain::Unanswered(error).into()),
        }
    }
}

/// Returns the name by which the server knows a transaction. Must be called before the commit.
async fn name(
    distributed: bool,
    shard: Option<Shard>,
    conn: &mut PgConnection,
) -> Result<Option<TransactionName>> {
    let naming = Box::pin(async {
        if distributed {
            TransactionName::of_distributed(conn, shard).await
        } else {
            TransactionName::of(conn).await
        }
    });
    let named = tokio::time::timeout(COMMIT_TIMEOUT, naming).await;
    named.map_err(|_| Fault::TimedOut("reading the ID of a transaction"))?
}

/// Returns the result of a commit according to the server's answer. A coordinator may answer with
/// an error after a worker has committed.
fn committed_on_server(
    committed: std::result::Result<(), sqlx::Error>,
    known_as: Option<TransactionName>,
    distributed: bool,
) -> Result<Committed> {
    match (committed, known_as) {
        (Ok(()), _) => Ok(Committed::Yes),
        // The server refused the commit and didn't just close the connection.
        (Err(error @ sqlx::Error::Database(_)), Some(_)) if !distributed && !is_cut(&error) => {
            Err(error.into())
        }
        (Err(error), Some(transaction)) => {
            tracing::warn!(%error, ?transaction, "a commit got no answer");
            Ok(Committed::Unanswered(Unanswered { transaction, error }))
        }
        (Err(error), None) => Err(error.into()),
    }
}
