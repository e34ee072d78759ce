//! Upkeep: the first start, prices, and backups.

use std::path::Path;

use domain::timestamp::DAY_MS;
use domain::verify::KEPT_DAYS;
use domain::{PriceChange, Prices, Timestamp};

use crate::admission::idempotency::kept_since;
use crate::shards;
use crate::transactions::work;
use crate::uploads::spool_folder::SpoolFolder;
use crate::uploads::spool_store::Spools;
use crate::{Config, Operations, run_blocking};
use store::error::{Fault, OpenError, Refusal, Result};
use store::gate::Priority;
use store::query::Conn;
use store::{
    Chore, Store, batches, commit_groups, idempotency, inbound, installation, messages, prices,
    verifications,
};

/// Records the currency at the first start. Records the configured prices if they differ from the
/// prices in force, unless prices were set at the support desk or by command. With `keep`, the
/// recorded values stay as they are. Commands use `keep`, because they may run without the server's
/// environment and must not change what sends cost.
pub(crate) async fn install(
    store: &Store,
    config: &Config,
    keep: bool,
    now: Timestamp,
) -> std::result::Result<(), OpenError> {
    {
        let mut conn = store.read().await?;
        if keep && prices::version(&mut conn).await? > 0 {
            return Ok(());
        }
        if !brings_prices(&mut conn, config.prices, now).await? {
            return same_currency(&installation::currency(&mut conn).await?, &config.currency);
        }
    }
    let form_key = hex::encode(config.entropy.bytes::<32>());
    let mut tx = store.begin().await?;
    installation::insert(&mut tx, &config.currency, &form_key, now).await?;
    same_currency(&installation::currency(&mut tx).await?, &config.currency)?;
    if brings_prices(&mut tx, config.prices, now).await? {
        let change = PriceChange::Base(config.prices);
        prices::insert(&mut tx, &change, now, (now, prices::SETTINGS)).await?;
    }
    Ok(tx.commit().await?)
}

/// Whether the prices of the settings must be recorded: they differ from the prices in force, and
/// no prices were set at the support desk or by command.
async fn brings_prices(conn: Conn<'_>, settings: Prices, now: Timestamp) -> Result<bool> {
    let history = prices::history(conn).await?;
    let in_force = history.at(history.time(now));
    if in_force.is_some_and(|prices| prices.base() == settings) {
        return Ok(false);
    }
    let by_staff = prices::are_set_by_staff(conn).await?;
    if by_staff {
        tracing::warn!(
            "the prices in the settings change nothing, since prices were set at the support desk \
             or by command: change them there"
        );
    }
    Ok(!by_staff)
}

pub(super) fn same_currency(stored: &str, wanted: &str) -> std::result::Result<(), OpenError> {
    if stored == wanted {
        return Ok(());
    }
    Err(OpenError::Currency { stored: stored.to_owned(), wanted: wanted.to_owned() })
}

/// Returns the number of shards of the installation.
pub(crate) async fn shards(store: &Store) -> Result<i64> {
    installation::shards(&mut store.read().await?).await
}

/// Returns the IDs after which new IDs begin: one for messages, and one for messages of batches.
/// Neither is below the sweep's mark, because IDs below the mark count as final.
pub(crate) async fn last_ids(store: &Store, shards: i64, now: Timestamp) -> Result<(i64, i64)> {
    let (mut last, mut last_batch, mut last_of_batches) = (0, 0, 0);
    for shard in shards::all(shards) {
        let mut conn = store.read_at(shard).await?;
        let (batch, of_batches) = batches::greatest(&mut conn).await?;
        last = messages::greatest(&mut conn).await?.max(last);
        last = inbound::greatest(&mut conn).await?.max(last);
        (last_batch, last_of_batches) = (batch.max(last_batch), of_batches.max(last_of_batches));
    }
    let ahead_ms = domain::ids::id_unix_ms(last) - now.unix_ms();
    if ahead_ms > CLOCK_AHEAD_MS {
        tracing::warn!(ahead_ms, "the newest message is from the future: was the clock set back?");
    }
    let swept = installation::swept(&mut store.read().await?).await?.low - 1;
    Ok((last.max(last_batch).max(swept), last_of_batches.max(swept)))
}

/// How far ahead of the clock the newest message may be before a warning is logged, in
/// milliseconds. Clocks always differ a little.
const CLOCK_AHEAD_MS: i64 = 60_000;

/// How often a copy is made if an upload comes and goes meanwhile.
const COPIES_MAX: u32 = 3;
/// The number of answers, and of commit groups, that one transaction deletes.
const FORGOTTEN_CHUNK: i64 = 1000;
/// How long the IDs of commit groups are kept, in milliseconds. A process queries a group's outcome
/// for less than a minute, and a busy process stores hundreds of groups per second.
const GROUPS_KEPT_MS: i64 = 60 * 60 * 1000;

impl Operations<'_> {
    /// Deletes the answers whose idempotency keys are too old to count, old verifications, and the
    /// commit groups whose outcome nobody queries any more.
    pub async fn forget_answers(&self) -> Result<()> {
        self.do_chore(
            Chore::ForgetAnswers,
            Priority::Bulk,
            work!(|tx, now| {
                let more = idempotency::sweep(tx, kept_since(now), FORGOTTEN_CHUNK).await?;
                let before = now.plus_ms(-KEPT_DAYS * DAY_MS);
                let deleted = verifications::delete(tx, before, FORGOTTEN_CHUNK).await?;
                let more = more || deleted == FORGOTTEN_CHUNK.unsigned_abs();
                if !tx.must_lock() {
                    return Ok(more);
                }
                let before = now.plus_ms(-GROUPS_KEPT_MS);
                let forgotten = commit_groups::forget(tx, before, FORGOTTEN_CHUNK).await?;
                Ok(more || forgotten)
            }),
        )
        .await
    }

    /// Copies the database into a new file while the service keeps running. Also copies the uploads
    /// that aren't messages yet, into a folder named like the file with `.spool` added. Spool files
    /// that the copy doesn't need are removed when the copy is served.
    ///
    /// # Errors
    /// `NoFileDatabase`, `FileExists`. `Failed` if the copy can't be written.
    pub async fn backup(&self, file: &Path) -> Result<()> {
        let begun = self.now();
        self.copy_to(file).await?;
        self.note_backup(begun).await
    }

    /// Like [`Operations::backup`], but the copy doesn't count as a backup until
    /// [`Operations::note_backup`] is called.
    ///
    /// # Errors
    /// As [`Operations::backup`].
    pub async fn copy_to(&self, file: &Path) -> Result<()> {
        let Spools::Folder(spools) = &self.inner.spools else {
            return Err(Refusal::NoFileDatabase.into());
        };
        if file.exists() {
            return Err(Refusal::FileExists.into());
        }
        // The spools are linked before the copy, because uploads may be fully expanded during it.
        // They are linked again after the copy, because uploads may be accepted during it.
        // An upload that is accepted and fully expanded between these steps is missing from the
        // links, so the copy is made again.
        let copied = SpoolFolder::at(&file.with_added_extension("spool"));
        for _ in 0..COPIES_MAX {
            link_spools(spools, file).await?;
            self.store().copy(file, self.now())?;
            link_spools(spools, file).await?;
            let names = copied.names().map_err(Fault::File)?;
            if Store::uploads_of(file)?.iter().all(|name| names.contains(name)) {
                return Ok(());
            }
            std::fs::remove_file(file).map_err(Fault::File)?;
        }
        let why = "an upload was accepted and expanded during each attempt; try again";
        Err(Fault::File(std::io::Error::other(why)).into())
    }
}

impl crate::Service {
    /// Restores a backup of a SQLite database: copies it to the place of the database, which must
    /// be free, and its uploads into the data folder.
    ///
    /// # Errors
    /// Fails if the file isn't a whole database, if an upload of the backup is missing, if there is a
    /// database or an upload already, or if the files can't be written.
    pub fn restore(
        database_url: &str,
        data_dir: &Path,
        file: &Path,
    ) -> std::result::Result<(), OpenError> {
        let from = SpoolFolder::at(&file.with_added_extension("spool"));
        let into = SpoolFolder::within(data_dir);
        if from.exists() && !into.names().map_err(OpenError::File)?.is_empty() {
            return Err(OpenError::SpoolsExist(data_dir.join("spool")));
        }
        Store::restore(database_url, file, &from.names().map_err(OpenError::File)?)?;
        if from.exists() {
            from.link_into(&data_dir.join("spool")).map_err(OpenError::File)?;
        }
        Ok(())
    }
}

async fn link_spools(spools: &SpoolFolder, file: &Path) -> Result<()> {
    let (spools, folder) = (spools.clone(), file.with_added_extension("spool"));
    let linked = run_blocking(move || spools.link_into(&folder)).await?;
    Ok(linked.map_err(Fault::File)?)
}
