//! The copy of an installation from SQLite to PostgreSQL, and the verification that everything
//! arrived.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use domain::{Money, Timestamp};

use crate::accounts::sealing::{self, Sealing};
use crate::delivery::expiry::have_expired;
use crate::operations::check::violations;
use crate::operations::history;
use crate::uploads::spool_folder::SpoolFolder;
use crate::uploads::spool_format::{ChunkError, parse_chunk, read_bytes};
use crate::{Clock, Service, run_blocking};
use store::copy::{self, Ledger, Reader, TABLES, Waiting};
use store::distribute::{self, Distribution};
use store::error::{Error, Fault, OpenError};
use store::history::MessageTables;
use store::sql::Dialect;
use store::{Missing, Store, Tx, hold, installation, shared};

type Result<T> = std::result::Result<T, CopyError>;

/// The copied rows and sums, counted on both sides.
#[derive(Clone, Debug)]
pub struct Copied {
    pub tables: Vec<CopiedTable>,
    /// The sum of the transfers of each kind, and the sum of the balances.
    pub sums: Vec<CopiedSum>,
    /// The number of accounts in the ledger. Each account has the same sum on both sides.
    pub accounts: usize,
    /// The number of upload rows that aren't messages yet. They come from the data folder.
    pub upload_rows: i64,
}

#[derive(Clone, Debug)]
pub struct CopiedTable {
    pub name: &'static str,
    /// The number of rows in the SQLite database.
    pub from: i64,
    pub to: i64,
}

#[derive(Clone, Debug)]
pub struct CopiedSum {
    /// The kind of the transfers, or `balances`.
    pub name: String,
    pub from: Money,
    pub to: Money,
}

/// Why nothing was copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("a copy only goes from sqlite:PATH to postgres://USER:PASSWORD@HOST:PORT/DATABASE")]
    Direction,
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the database to copy to isn't empty: name an empty one")]
    NotEmpty,
    #[error(
        "the database to copy to is distributed: name one that isn't yet, and run \
         `heliograph distribute` on it after the copy"
    )]
    Distributed,
    #[error("the source database violates its invariants; nothing was copied:\n{}", .0.join("\n"))]
    Violations(Vec<String>),
    #[error(
        "rows of an upload can't be read from {path}; nothing was copied: {why}. Is the data \
         folder right? If they are lost, serve the database once more: that releases their price"
    )]
    Spool { path: String, why: String },
    #[error("the copy differs from the source; nothing was kept:\n{}", .0.join("\n"))]
    Differs(Vec<String>),
    #[error("{}", .0.for_operator())]
    Failed(#[from] Error),
}

impl Service {
    /// Copies a SQLite database and its pending uploads to an empty PostgreSQL database, completely
    /// or not at all. No process may serve the SQLite database meanwhile. `data_dir` is the folder
    /// that has the uploads. `tables` says whether messages go into tables by day or by week.
    ///
    /// # Errors
    /// Fails if either database isn't in the required state, or if the copy differs from the
    /// source. Nothing is copied then.
    pub async fn copy(
        from: &str,
        to: &str,
        data_dir: &Path,
        tables: MessageTables,
        clock: &Clock,
    ) -> Result<Copied> {
        if (Dialect::of_url(from)?, Dialect::of_url(to)?) != (Dialect::Sqlite, Dialect::Postgres) {
            return Err(CopyError::Direction);
        }
        let source = Store::open(from, Missing::Refuse).await?;
        source.serve_alone()?;
        source.must_be_of_this_release().await?;
        let target = Store::open(to, Missing::Refuse).await?;
        let spool = SpoolFolder::within(data_dir);
        let key_file = Sealing::file(data_dir);
        let copied = copy_all(&source, &target, &spool, &key_file, tables, clock.now()).await;
        target.close().await;
        source.close().await;
        copied
    }
}

async fn copy_all(
    source: &Store,
    target: &Store,
    spool: &SpoolFolder,
    key_file: &Path,
    tables: MessageTables,
    now: Timestamp,
) -> Result<Copied> {
    let mut conn = target.read().await?;
    if !copy::is_empty(&mut conn).await? {
        return Err(match distribute::state(&mut conn).await {
            Ok((_, Distribution::Begun | Distribution::Done)) => CopyError::Distributed,
            _ => CopyError::NotEmpty,
        });
    }
    drop(conn);
    // A write transaction, because a command could otherwise write during the copy, and its changes
    // would be lost.
    let mut from = source.begin().await?;
    let violations = violations(&mut from, 1).await?;
    if !violations.is_empty() {
        return Err(CopyError::Violations(violations));
    }
    target.migrate().await?;
    // Each day's or week's tables are created in their own transaction, as the service does it. A
    // failed copy leaves them empty.
    history::make_tables(target, copy::days(&mut from).await?, tables).await?;
    let mut to = target.begin().await?;
    copy::take_over(&mut to).await?;
    if !copy::is_empty(&mut to).await? {
        return Err(CopyError::NotEmpty);
    }
    for table in TABLES {
        copy_table(&mut from, &mut to, table).await?;
    }
    // A backup that was never started is held at the first start of the copy, too.
    if hold::known_place(&mut to).await? == Some(source.place().await?) {
        hold::set_place(&mut to, None).await?;
    }
    // Sealed values stay sealed. Processes on other machines find the key in the database.
    if let Some(key) = sealing::read(key_file).map_err(|error| Error::Failed(Fault::File(error)))? {
        installation::keep_sealing_key(&mut to, key.trim()).await?;
    }
    let upload_rows = copy_uploads(&mut from, &mut to, spool, now).await?;
    copy::analyze(&mut to).await?;
    let copied = prove(&mut from, &mut to, upload_rows).await?;
    copy::number_on(&mut from, &mut to).await?;
    to.commit().await?;
    Ok(copied)
}

async fn copy_table(from: &mut Tx<'_>, to: &mut Tx<'_>, table: &'static str) -> Result<()> {
    let mut rows = 0;
    let mut reader = Reader::of(from, table).await?;
    let mut next = reader.next(from).await?;
    while let Some(chunk) = next {
        rows += chunk.rows;
        let columns = reader.columns.clone();
        let writing = copy::write(to, table, &columns, chunk);
        let (read, written) = tokio::join!(reader.next(from), writing);
        written?;
        next = read?;
    }
    copy::complete(to, table).await?;
    tracing::info!(table, rows, "copied");
    Ok(())
}

/// Moves the rows that aren't messages yet from files to a table that every process can read.
async fn copy_uploads(
    from: &mut Tx<'_>,
    to: &mut Tx<'_>,
    spool: &SpoolFolder,
    now: Timestamp,
) -> Result<i64> {
    let mut rows = 0;
    let is_held = hold::since(from).await?.is_some();
    for upload in copy::waiting(from).await? {
        // The rows of older uploads have expired, so nobody reads them, unless the upload is held.
        if is_held || !have_expired(upload.expires_at, upload.first_message_id, now) {
            copy_upload(to, spool, &upload, now).await?;
            rows += upload.rows;
        }
    }
    Ok(rows)
}

async fn copy_upload(
    to: &mut Tx<'_>,
    spool: &SpoolFolder,
    upload: &Waiting,
    now: Timestamp,
) -> Result<()> {
    let path = spool.path(&upload.spool);
    let refuse = |why| {
        let path = path.display().to_string();
        Err(CopyError::Spool { path, why })
    };
    let shard = copy::shard_of_spool(to, &upload.spool).await?;
    to.at(shard);
    let (mut offset, mut left) = (upload.offset, upload.rows);
    while left > 0 {
        let file = path.clone();
        let reading = run_blocking(move || {
            let bytes = read_bytes(&file, offset)?;
            let chunk = parse_chunk(bytes.clone(), offset)?;
            Ok((bytes, chunk))
        });
        let (bytes, chunk) = match reading.await? {
            Ok((_, chunk)) if !(1..=left).contains(&chunk.rows) => {
                return refuse("a chunk has no rows, or more than the upload has left".to_owned());
            }
            Ok(read) => read,
            Err(ChunkError::Lost(why)) => return refuse(why),
            Err(ChunkError::Io(error)) => return refuse(error.to_string()),
        };
        shared::insert_chunk(to, &upload.spool, offset, &bytes, now).await?;
        offset = chunk.end;
        left -= chunk.rows;
    }
    Ok(())
}

/// Compares the counts and sums of both sides and checks the rows that arrived, before they are
/// committed.
async fn prove(from: &mut Tx<'_>, to: &mut Tx<'_>, upload_rows: i64) -> Result<Copied> {
    let mut differences = Vec::new();
    let mut differs = |what: String, from: i64, to: i64| {
        if from != to {
            differences.push(format!("{what}: {from} before, {to} after"));
        }
    };
    let mut tables = Vec::new();
    for name in TABLES {
        let (from, to) = (copy::count(from, name).await?, copy::count(to, name).await?);
        differs(format!("rows of {name}"), from, to);
        tables.push(CopiedTable { name, from, to });
    }
    let (before, after) = (copy::ledger(from).await?, copy::ledger(to).await?);
    for (account, from, to) in pairs(&before.by_account, &after.by_account) {
        differs(format!("account {account}, in micro-units"), from, to);
    }
    let sums = sums(&before, &after);
    for sum in &sums {
        let what = format!("sum of {}, in micro-units", sum.name);
        differs(what, sum.from.micros(), sum.to.micros());
    }
    let shards = installation::shards(to).await?;
    differences.extend(violations(to, shards).await?);
    if !differences.is_empty() {
        return Err(CopyError::Differs(differences));
    }
    Ok(Copied { tables, sums, accounts: before.by_account.len(), upload_rows })
}

fn sums(before: &Ledger, after: &Ledger) -> Vec<CopiedSum> {
    let kinds = pairs(&before.by_kind, &after.by_kind);
    let kinds = kinds.map(|(kind, from, to)| (kind.clone(), from, to));
    let balances = ("balances".to_owned(), before.balances, after.balances);
    kinds
        .chain([balances])
        .map(|(name, from, to)| CopiedSum {
            name,
            from: Money::from_micros(from),
            to: Money::from_micros(to),
        })
        .collect()
}

/// Returns the values of each key on both sides, with 0 where a side has no value.
fn pairs<'a, K: Ord>(
    before: &'a BTreeMap<K, i64>,
    after: &'a BTreeMap<K, i64>,
) -> impl Iterator<Item = (&'a K, i64, i64)> {
    let of = |side: &BTreeMap<K, i64>, key| side.get(key).copied().unwrap_or_default();
    let keys: BTreeSet<&K> = before.keys().chain(after.keys()).collect();
    keys.into_iter().map(move |key| (key, of(before, key), of(after, key)))
}
