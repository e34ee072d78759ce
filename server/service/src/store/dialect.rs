//! What must differ between databases. Everything else is one SQL body for all.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use sqlx::{AnyConnection, Executor as _, Row as _};

use super::history::Range;
use super::query::{Connection, query, run};
use super::{Chore, postgres, sqlite};
use crate::error::{Error, OpenError, Result};

/// How long a connection that is given back may take to say that it lives.
const REUSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Which database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// A file, for one process that serves.
    Sqlite,
    /// A server, for any number of them.
    Postgres,
}

/// How a server knows a transaction.
#[derive(Debug)]
pub(crate) struct TransactionName {
    id: String,
    /// Since when the server has not crashed.
    server: String,
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    UnderWay,
    Committed,
    /// Nothing was stored.
    Nothing,
    /// The server crashed, and knows only another transaction of this name: the rows tell.
    Forgotten,
}

impl Dialect {
    /// Which database a URL names.
    pub(crate) fn of_url(url: &str) -> std::result::Result<Self, OpenError> {
        let refuse = |why| {
            Err(OpenError::Url {
                url: without_password(url),
                why,
            })
        };
        match url.split_once(':') {
            Some(("sqlite", rest)) if rest.contains(":memory:") => {
                refuse("a database in memory loses what it accepted; name a file")
            }
            Some(("sqlite", rest)) if !rest.trim_start_matches('/').is_empty() => Ok(Self::Sqlite),
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => Ok(Self::Postgres),
            _ => refuse("use sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE"),
        }
    }

    /// The database's file, where it has one.
    pub(crate) fn file(self, url: &str) -> Option<&Path> {
        match self {
            Self::Sqlite => {
                let path = url.strip_prefix("sqlite:")?;
                let path = path.strip_prefix("//").unwrap_or(path);
                Some(Path::new(
                    path.split_once('?').map_or(path, |(path, _)| path),
                ))
            }
            Self::Postgres => None,
        }
    }

    /// Whether other processes may serve the same database.
    pub(crate) const fn is_shared(self) -> bool {
        matches!(self, Self::Postgres)
    }

    /// Transactions of a process that write at the same time. SQLite has one writer; with
    /// PostgreSQL a commit's way to the disk and back is used by the next ones.
    pub(crate) const fn writers(self) -> u32 {
        match self {
            Self::Sqlite => 1,
            Self::Postgres => 4,
        }
    }

    /// Whether a file that exists is a database of this kind, or empty and may become one.
    /// Connecting would find out too, but only after trying again for seconds.
    pub(crate) fn owns(self, file: &Path) -> std::io::Result<bool> {
        match self {
            Self::Sqlite => {
                let mut start = Vec::new();
                let length = sqlite::FILE_START.len() as u64;
                File::open(file)?.take(length).read_to_end(&mut start)?;
                Ok(start.is_empty() || start == sqlite::FILE_START)
            }
            Self::Postgres => Ok(true),
        }
    }

    /// The URL that connects.
    pub(crate) fn connection_url(self, url: &str) -> String {
        match self {
            // Makes the file when it is missing.
            Self::Sqlite if url.contains('?') => format!("{url}&mode=rwc"),
            Self::Sqlite => format!("{url}?mode=rwc"),
            Self::Postgres => url.to_owned(),
        }
    }

    /// Sets up a connection that writes.
    pub(crate) async fn prepare_writer(
        self,
        conn: &mut AnyConnection,
    ) -> std::result::Result<(), sqlx::Error> {
        match self {
            Self::Sqlite => conn.execute(sqlite::WRITER).await.map(drop),
            Self::Postgres => conn.execute(postgres::SESSION).await.map(drop),
        }
    }

    /// Sets up a connection that only reads.
    pub(crate) async fn prepare_reader(
        self,
        conn: &mut AnyConnection,
    ) -> std::result::Result<(), sqlx::Error> {
        match self {
            Self::Sqlite => conn.execute(sqlite::READER).await.map(drop),
            Self::Postgres => {
                conn.execute(postgres::SESSION).await?;
                conn.execute(postgres::READER).await.map(drop)
            }
        }
    }

    /// Begins a transaction that writes.
    pub(crate) const fn begin(self) -> &'static str {
        match self {
            // A deferred transaction that reads first fails with a lock error when it comes to
            // write.
            Self::Sqlite => "BEGIN IMMEDIATE",
            // Who writes the same rows waits for their locks.
            Self::Postgres => "BEGIN",
        }
    }

    /// Begins a transaction of a verb that people call: one that reads, decides and writes.
    pub(crate) const fn begin_verb(self) -> &'static str {
        match self {
            Self::Sqlite => self.begin(),
            Self::Postgres => postgres::BEGIN_VERB,
        }
    }

    /// Begins a transaction that only reads: all its statements see one moment.
    pub(crate) const fn begin_snapshot(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN",
            Self::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        }
    }

    /// Sets up a transaction that looks through all there is.
    pub(crate) async fn prepare_recount(self, conn: &mut dyn Connection) -> Result<()> {
        match self {
            Self::Sqlite => Ok(()),
            Self::Postgres => run(conn, postgres::RECOUNT).await,
        }
    }

    /// Connections that only read.
    pub(crate) const fn readers(self) -> u32 {
        match self {
            Self::Sqlite => 4,
            Self::Postgres => 8,
        }
    }

    /// Sets up a connection that migrates.
    pub(crate) async fn prepare_migration(
        self,
        conn: &mut AnyConnection,
    ) -> std::result::Result<(), sqlx::Error> {
        match self {
            Self::Sqlite => self.prepare_writer(conn).await,
            // It waits as long as another process migrates, and a large table takes its time.
            Self::Postgres => Ok(()),
        }
    }

    /// Whether a connection may be used again. The begin of a transaction can be cut short at a
    /// point where sqlx doesn't know yet that there is one: whoever got that connection next would
    /// be in it.
    pub(crate) async fn is_reusable(
        self,
        conn: &mut AnyConnection,
    ) -> std::result::Result<bool, sqlx::Error> {
        match self {
            Self::Sqlite => Ok(true),
            Self::Postgres => {
                // One that died without a word would keep its place in the pool.
                let asked = sqlx::raw_sql(postgres::IN_TRANSACTION).fetch_one(conn);
                let row = tokio::time::timeout(REUSE_TIMEOUT, asked)
                    .await
                    .map_err(|_| sqlx::Error::PoolTimedOut)??;
                Ok(row.try_get::<i64, _>("n")? == 0)
            }
        }
    }

    /// Takes a chore for this transaction; false while another one has it.
    pub(crate) async fn try_lock(self, conn: &mut dyn Connection, chore: Chore) -> Result<bool> {
        match self {
            Self::Sqlite => Ok(true),
            Self::Postgres => {
                let row = query(postgres::TRY_LOCK).bind(chore.number());
                Ok(row.fetch_one(conn).await?.get::<i64>("mine")? == 1)
            }
        }
    }

    /// The server's clock in unix milliseconds, where there is a server.
    pub(crate) async fn server_ms(self, conn: &mut dyn Connection) -> Result<Option<i64>> {
        match self {
            Self::Sqlite => Ok(None),
            Self::Postgres => {
                let row = query(postgres::CLOCK).fetch_one(conn).await?;
                row.get("ms").map(Some)
            }
        }
    }

    /// How long the oldest transaction has been open, in milliseconds, as far as this user may see
    /// it.
    pub(crate) async fn oldest_ms(self, conn: &mut dyn Connection) -> Result<Option<i64>> {
        match self {
            Self::Sqlite => Ok(None),
            Self::Postgres => {
                let row = query(postgres::OLDEST).fetch_one(conn).await?;
                row.get("ms").map(Some)
            }
        }
    }

    /// Makes the tables of a day (since 1970-01-01 UTC) for messages and their events; false when
    /// there is nothing to do: they are there, or days have no tables.
    pub(crate) async fn make_day(self, conn: &mut dyn Connection, day: i64) -> Result<bool> {
        match self {
            Self::Sqlite => Ok(false),
            Self::Postgres => postgres::make_day(conn, day).await,
        }
    }

    /// The name that the tables of a day end in, if it has tables.
    pub(crate) async fn day_table(
        self,
        conn: &mut dyn Connection,
        day: i64,
    ) -> Result<Option<String>> {
        match self {
            Self::Sqlite => Ok(None),
            Self::Postgres => {
                let name = postgres::day_name(day);
                Ok(postgres::has_day(conn, &name).await?.then_some(name))
            }
        }
    }

    /// Forgets messages that were dropped where they are noted beside.
    pub(crate) async fn forget_unusual(
        self,
        conn: &mut dyn Connection,
        range: Range,
    ) -> Result<()> {
        match self {
            // Its index has rows of messages that are there.
            Self::Sqlite => Ok(()),
            Self::Postgres => postgres::forget_unusual(conn, range).await,
        }
    }

    /// Lets the statements of a transaction take their time.
    pub(crate) async fn take_time(self, conn: &mut dyn Connection) -> Result<()> {
        match self {
            Self::Sqlite => Ok(()),
            Self::Postgres => run(conn, postgres::TAKE_TIME).await,
        }
    }

    /// Drops the tables of a day.
    pub(crate) async fn drop_day(self, conn: &mut dyn Connection, name: &str) -> Result<()> {
        match self {
            Self::Sqlite => Ok(()),
            Self::Postgres => postgres::drop_day(conn, name).await,
        }
    }

    /// How the server knows a transaction that wrote something, in case its commit isn't answered.
    pub(crate) async fn name_transaction(
        self,
        conn: &mut AnyConnection,
    ) -> std::result::Result<Option<TransactionName>, sqlx::Error> {
        match self {
            // Nothing lies between us and the file that could be cut.
            Self::Sqlite => Ok(None),
            Self::Postgres => {
                let row = sqlx::query(postgres::TRANSACTION).fetch_one(conn).await?;
                let id: Option<String> = row.try_get("id")?;
                let server = row.try_get("server")?;
                Ok(id.map(|id| TransactionName { id, server }))
            }
        }
    }

    /// Begins a transaction that writes, and asks how the server knows it, in one way to the server
    /// and back.
    pub(crate) async fn begin_named(
        self,
        conn: &mut AnyConnection,
    ) -> std::result::Result<Option<TransactionName>, sqlx::Error> {
        match self {
            Self::Sqlite => conn.execute(self.begin()).await.map(|_| None),
            Self::Postgres => {
                // The first of the two statements has no row.
                let rows = sqlx::raw_sql(postgres::BEGIN_NAMED).fetch_all(conn).await?;
                let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
                Ok(Some(TransactionName {
                    id: row.try_get("id")?,
                    server: row.try_get("server")?,
                }))
            }
        }
    }

    /// Whether a statement failed because there is no such table.
    pub(crate) fn is_missing_table(self, error: &Error) -> bool {
        // SQLite has a code for whatever is wrong with a statement; ours are known to be right.
        let missing = match self {
            Self::Sqlite => "1",
            Self::Postgres => "42P01",
        };
        error.database_code().is_some_and(|code| code == missing)
    }

    /// What became of a transaction.
    pub(crate) async fn outcome(
        self,
        conn: &mut AnyConnection,
        transaction: &TransactionName,
    ) -> std::result::Result<Outcome, sqlx::Error> {
        let row = sqlx::query(postgres::OUTCOME)
            .bind(transaction.id.clone())
            .bind(transaction.server.clone())
            .fetch_one(conn)
            .await?;
        let outcome: Option<String> = row.try_get("outcome")?;
        Ok(match outcome.as_deref() {
            Some("in progress") => Outcome::UnderWay,
            Some("committed") => Outcome::Committed,
            Some("forgotten") => Outcome::Forgotten,
            _ => Outcome::Nothing,
        })
    }

    /// Version, name and SQL of each migration.
    pub(crate) const fn migrations(self) -> &'static [(i64, &'static str, &'static str)] {
        match self {
            Self::Sqlite => &[(
                1,
                "schema",
                include_str!("../../../../migrations/sqlite/0001_schema.sql"),
            )],
            Self::Postgres => &[(
                1,
                "schema",
                include_str!("../../../../migrations/postgres/0001_schema.sql"),
            )],
        }
    }

    /// The statements that write many rows at once.
    pub(crate) const fn batch(self) -> &'static Batch {
        match self {
            Self::Sqlite => &sqlite::BATCH,
            Self::Postgres => &postgres::BATCH,
        }
    }
}

/// Statements that take all rows of a batch in one parameter: a JSON array with an array per row.
/// The text differs by database because each unpacks JSON in its own way, and because PostgreSQL
/// locks rows.
///
/// "Ids" are three parameters: the JSON array, the least of them and the greatest. The last two are
/// for PostgreSQL, which keeps messages in partitions; so is a last parameter of those over
/// messages, the queue, segments and batches, the transaction's applications
/// ([`super::WriteTx::named`]). SQLite does without.
pub(crate) struct Batch {
    /// `[id]`, `[reference]` → how many there are; locks them in their order. `None` where one
    /// transaction writes at a time.
    pub(crate) lock_applications: Option<&'static str>,
    /// `[reference]` → applications.
    pub(crate) applications_by_reference: &'static str,
    /// `[[id, balance before, balance, test balance, test day, status, live hash, test hash, sender
    /// state, test balance before]]`.
    pub(crate) charge_applications: &'static str,
    /// `[[id, application, test, number, kind, sender, body, requestid, pages, segments, unit
    /// price, cost, created at, sending at, status]]`.
    pub(crate) insert_messages: &'static str,
    /// `[[debit, credit, amount, kind, application, message, balance after, batch]]`, then the
    /// moment.
    pub(crate) insert_transfers: &'static str,
    /// `[[message, application, carrier, due at, lease token]]`, then whether they are of a batch
    /// (0|1) and whether they are put aside (0|1).
    pub(crate) insert_queue: &'static str,
    /// First id, application, test, sender, requestid, batch, price of a page local and
    /// international, body, pages and segments where the rows have none, unix milliseconds of id 0,
    /// place of the first row in the file, `[[digits, local 0|1, body, pages, segments]]`.
    pub(crate) expand_messages: &'static str,
    /// `[message]`: puts rows of suspended applications aside.
    pub(crate) put_aside: &'static str,
    /// `[[application, test, key]]`, then the moment after which an answer is still kept.
    pub(crate) kept_answers: &'static str,
    /// `[[application, test, key, digest, answer]]`, then the moment.
    pub(crate) keep_answers: &'static str,
    /// Ids → how many there are; locks messages that are about to be changed. `None` where one
    /// transaction writes at a time.
    pub(crate) lock_messages: Option<&'static str>,
    /// Ids → `[[id, application, test, batch, created at, status, cost]]`: those that aren't final.
    pub(crate) open_messages: &'static str,
    /// `[[id, status, error, release 0|1, taken by a carrier 0|1]]`, then the moment, the least and
    /// the greatest id: makes messages final where they aren't.
    pub(crate) finish_messages: &'static str,
    /// Carrier, now, least id whose time hasn't run out, limit of single messages, limit in all,
    /// the moments from which single messages and those of batches are looked for → `[[message,
    /// begun, suspended 0|1, due at, of a batch 0|1, application]]`: rows that may be claimed; none
    /// while the carrier is drained.
    pub(crate) due: &'static str,
    /// `[message]`, end of the lease, token: claims rows.
    pub(crate) claim: &'static str,
    /// Ids → `[[[as open_messages], number, kind, sender, body]]`: those that wait to be sent.
    pub(crate) claimed_messages: &'static str,
    /// `[[message, token]]` → `[[message, begun, attempts, send once more 0|1]]`: the rows whose
    /// lease holds.
    pub(crate) leased: &'static str,
    /// `[[id, segments]]`, then carrier, the moment, the least and the greatest id: a carrier took
    /// all of them.
    pub(crate) submit_messages: &'static str,
    /// `[[id, unknown 0|1, some of it taken 0|1]]`, then carrier, the moment, the least and the
    /// greatest id.
    pub(crate) begin_messages: &'static str,
    /// `[id]`, then the moment, the least and the greatest id: claimed rows are being sent.
    pub(crate) start_messages: &'static str,
    /// The moment, limit, the least id of a message that can be in the queue → message, carrier,
    /// begun, application, segments, lost_answer: claimed rows whose lease is over.
    pub(crate) ended_leases: &'static str,
    /// Carrier, the id after which to look, limit → message_id, application_id: rows that wait for
    /// a carrier which has nothing of them.
    pub(crate) unclaimed: &'static str,
    /// Carrier, limit → message_id, application_id: some of the rows that wait for a carrier which
    /// nobody claims for.
    pub(crate) unrouted: &'static str,
    /// `[id]`: takes rows out of the queue.
    pub(crate) drop_queued: &'static str,
    /// `[[id, due at, attempts to add, begun, carrier or null, refused by]]`: puts claimed rows
    /// back.
    pub(crate) requeue: &'static str,
    /// `[[message, segment, segments, application, carrier's id, status]]`, then carrier, the
    /// moment: what was handed over, for the first time or once more.
    pub(crate) insert_segments: &'static str,
    /// The same without the status: names that came when the claim was over.
    pub(crate) name_segments: &'static str,
    /// `[message]` → `[[message, segment, segments, status, error, submits, named 0|1]]`.
    pub(crate) segments_of: &'static str,
    /// `[carrier's id]`, then carrier → `[[place in the parameter, message, segment, segments,
    /// application, status]]`, the oldest message first.
    pub(crate) segments_named: &'static str,
    /// `[number as carriers have it]`, then carrier, country code, the least id of a
    /// message with segments → `[[message, segment, segments, application,
    /// submitted at, sender, number as carriers have it]]`: those whose submits weren't answered.
    pub(crate) unanswered_segments: &'static str,
    /// `[[message, segment, status, error]]`: makes segments final where they aren't.
    pub(crate) finish_segments: &'static str,
    /// `[[carrier's id, status, error]]`, then carrier, the moment.
    pub(crate) park_receipts: &'static str,
    /// `[carrier's id]`, then carrier, the moment after which they came → `[[id, carrier's id,
    /// status, error]]`.
    pub(crate) parked_receipts: &'static str,
    /// `[id]`, then carrier.
    pub(crate) drop_parked: &'static str,
    /// Ids → `[[message, number, kind, sender, reference, refused by]]`: what routes look at. Test
    /// messages have no other way, and aren't among them.
    pub(crate) routed_messages: &'static str,
    /// `[[message, carrier]]`, then the moment: gives waiting rows to another carrier, which finds
    /// them as if they were new.
    pub(crate) move_queued: &'static str,
    /// `[[carrier, number, state, since, in flight, window, rate, throttled, last error]]`, then
    /// the moment, the process's slot.
    pub(crate) write_connections: &'static str,
    /// `[[message, application, status, detail]]`, then the moment.
    pub(crate) insert_events: &'static str,
    /// `[[application, balance before, balance, play money to give back]]`, then the most play
    /// money.
    pub(crate) settle_applications: &'static str,
    /// `[[application, test, day, status, n to add]]`, then the process's slot, who counts (0|1, as
    /// in the schema).
    pub(crate) add_days: &'static str,
    /// `[[batch, …]]` → how many there are; locks them in their order. `None` as above.
    pub(crate) lock_batches: Option<&'static str>,
    /// `[[batch, [to add to each status, in the order of the columns]]]`, then the moment.
    pub(crate) move_batches: &'static str,
    /// The beginning of a statement over messages, whose rows come as one JSON value with all that
    /// reports show; `FROM (…) m` follows.
    pub(crate) listed_messages: &'static str,
    /// What names the index that a list of messages goes through, before its name; `None` where the
    /// database finds it by statistics of its own.
    pub(crate) through_index: Option<&'static str>,
    /// Where messages that are unknown, failed, expired or were rejected are found by their status;
    /// called `d`.
    pub(crate) unusual: &'static str,
    /// Adds to such rows, or to those of the queue, their messages, called `m`: each by its id, of
    /// a range.
    pub(crate) their_messages: &'static str,
    /// Whether messages are in tables by day: a statement should name few days.
    pub(crate) by_day: bool,
    /// `[id]` → id, balance; where several transactions write at a time it locks them.
    pub(crate) balances: &'static str,
}

/// A URL that may be shown: neither who signs in nor what follows the database's name, where a
/// password can be too.
pub(super) fn without_password(url: &str) -> String {
    let shown = url.split_once('?').map_or(url, |(shown, _)| shown);
    match (shown.find("://"), shown.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => {
            format!("{}://…{}", &shown[..scheme], &shown[at..])
        }
        _ => shown.to_owned(),
    }
}

#[cfg(test)]
impl Batch {
    /// Every statement with its name.
    pub(crate) fn all(&self) -> Vec<(&'static str, &'static str)> {
        let locks = [
            ("lock_applications", self.lock_applications),
            ("lock_messages", self.lock_messages),
            ("lock_batches", self.lock_batches),
        ];
        let locks = locks
            .into_iter()
            .filter_map(|(name, sql)| Some((name, sql?)));
        let others = [
            ("applications_by_reference", self.applications_by_reference),
            ("charge_applications", self.charge_applications),
            ("insert_messages", self.insert_messages),
            ("insert_transfers", self.insert_transfers),
            ("insert_queue", self.insert_queue),
            ("expand_messages", self.expand_messages),
            ("put_aside", self.put_aside),
            ("kept_answers", self.kept_answers),
            ("keep_answers", self.keep_answers),
            ("open_messages", self.open_messages),
            ("finish_messages", self.finish_messages),
            ("due", self.due),
            ("claim", self.claim),
            ("claimed_messages", self.claimed_messages),
            ("leased", self.leased),
            ("submit_messages", self.submit_messages),
            ("begin_messages", self.begin_messages),
            ("start_messages", self.start_messages),
            ("drop_queued", self.drop_queued),
            ("requeue", self.requeue),
            ("insert_segments", self.insert_segments),
            ("name_segments", self.name_segments),
            ("segments_of", self.segments_of),
            ("segments_named", self.segments_named),
            ("unanswered_segments", self.unanswered_segments),
            ("finish_segments", self.finish_segments),
            ("park_receipts", self.park_receipts),
            ("parked_receipts", self.parked_receipts),
            ("drop_parked", self.drop_parked),
            ("routed_messages", self.routed_messages),
            ("move_queued", self.move_queued),
            ("write_connections", self.write_connections),
            ("insert_events", self.insert_events),
            ("settle_applications", self.settle_applications),
            ("add_days", self.add_days),
            ("move_batches", self.move_batches),
            ("balances", self.balances),
            ("ended_leases", self.ended_leases),
            ("unclaimed", self.unclaimed),
            ("unrouted", self.unrouted),
        ];
        locks.chain(others).collect()
    }
}
