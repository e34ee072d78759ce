//! Recognizes a PostgreSQL database that has lost commits: it was restored from a base backup or a
//! snapshot, or a standby took over that lacked them. Messages whose submits are among the lost
//! commits could be submitted again, so messages are held.
//!
//! Every few seconds, a process stores the time in the database and, once that is committed, in a
//! file of its data folder. If the database lacks the time in the file, commits are lost. A changed
//! database server or timeline alone proves nothing, because a standby may have all commits.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use domain::Timestamp;
use domain::timestamp::DAY_MS;
use store::audit::Actor;
use store::error::Result;
use store::{Store, data_folders};

use super::hold;
use crate::run_blocking;

const FILE: &str = "last_commit";
/// How long the database keeps the row of an unused folder, in milliseconds.
pub(crate) const KEPT_MS: i64 = 400 * DAY_MS;
/// The age, in milliseconds, from which a file is ignored, because its row may have been deleted.
/// Well below [`KEPT_MS`], so that each younger file still has its row.
const COUNTS_MS: i64 = 300 * DAY_MS;

/// The last commit that this process knows of, also from its data folder.
pub(crate) struct LastCommit {
    file: PathBuf,
    /// The ID that the folder gets if it has no file yet.
    fresh: i64,
    known: Mutex<Option<Known>>,
    is_unwritable: AtomicBool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    /// Identifies the database, see [`Store::place`].
    place: String,
    folder: i64,
    at: Timestamp,
}

impl Known {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let place = words.next()?.to_owned();
        let folder = words.next()?.parse().ok()?;
        let at = Timestamp::from_unix_ms(words.next()?.parse().ok()?);
        Some(Self { place, folder, at })
    }

    fn line(&self) -> String {
        format!("{} {} {}\n", self.place, self.folder, self.at.unix_ms())
    }
}

impl LastCommit {
    /// Reads the file of a data folder. `fresh` becomes the folder's ID if there is no file.
    pub(crate) fn read(data_dir: &Path, fresh: i64) -> Self {
        let file = data_dir.join(FILE);
        let known = fs::read_to_string(&file).ok().and_then(|text| Known::parse(&text));
        Self { file, fresh, known: Mutex::new(known), is_unwritable: AtomicBool::new(false) }
    }

    /// Begins a hold if the database lacks the last commit that this process knows of. Then stores
    /// `now` in the database and in the file. `last_id` is the greatest ID of a message.
    pub(crate) async fn renew(
        &self,
        store: &Store,
        place: String,
        last_id: i64,
        now: Timestamp,
    ) -> Result<()> {
        let known =
            self.known().filter(|known| known.place == place && now.ms_since(known.at) < COUNTS_MS);
        let (folder, at) = known.map_or((self.fresh, None), |known| (known.folder, Some(known.at)));
        // The time grows with each call, even if the clock was set back. Otherwise a backup could
        // already have the time of a later commit.
        let next = at.map_or(now, |at| now.max(at.plus_ms(1)));
        let mut conn = store.read().await?;
        let is_lost = match at {
            Some(at) => !data_folders::has(&mut conn, folder, at).await?,
            None => false,
        };
        if is_lost {
            drop(conn);
            let mut tx = store.begin().await?;
            // The lost messages may be newer than the clock.
            hold::begin(&mut tx, &Actor::System, hold::after(last_id).max(next), now).await?;
            data_folders::note(&mut tx, folder, next).await?;
            tx.commit().await?;
            tracing::warn!(
                "the database lacks commits that this process has seen: it was restored from a \
                 backup, or a standby without them took over. {}",
                hold::HELD
            );
        } else {
            data_folders::note(&mut conn, folder, next).await?;
        }
        self.keep(Known { place, folder, at: next }).await
    }

    fn known(&self) -> Option<Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn keep(&self, known: Known) -> Result<()> {
        let (file, line) = (self.file.clone(), known.line());
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
        let written = run_blocking(move || write(&file, &line)).await?;
        let was_unwritable = self.is_unwritable.swap(written.is_err(), Ordering::Relaxed);
        if let Err(error) = written
            && !was_unwritable
        {
            tracing::warn!(
                file = %self.file.display(),
                %error,
                "the file can't be written, so a restored database won't be recognized"
            );
        }
        Ok(())
    }
}

/// Replaces the file. Other processes may have the same data folder. The file isn't synced: with an
/// older file, the process only misses the loss of the newest commits.
fn write(file: &Path, line: &str) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut part = tempfile::Builder::new().prefix("last_commit.").tempfile_in(folder)?;
    part.write_all(line.as_bytes())?;
    part.persist(file)?;
    Ok(())
}
