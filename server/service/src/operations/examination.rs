//! Examines a database and what belongs to it, for `heliograph doctor`. Changes nothing, so it may
//! run beside a server and on a database that was never served.

use domain::Timestamp;
use domain::ids::id_unix_ms;
use domain::records::ConnectionRecord;
use store::error::{OpenError, Result};
use store::{Store, carriers, hold, installation, prices};

use super::{distribute, nodes, upkeep};
use crate::Config;
use crate::accounts::key_check::{KeyPlace, check_key};

/// The facts about a database that this release can serve.
#[derive(Debug)]
pub struct Examination {
    /// The database program, such as `PostgreSQL 15.20`.
    pub program: String,
    /// How far this machine's clock is ahead of the database server's, in milliseconds. `None` on
    /// SQLite, and if the server answered too slowly.
    pub clock_ahead_ms: Option<i64>,
    /// `None` if no server has ever used the database.
    pub installation: Option<Installation>,
}

/// The facts about a database that a server has used.
#[derive(Debug)]
pub struct Installation {
    /// How far the newest message is ahead of the clock, in milliseconds. It is negative, unless
    /// the clock was set back.
    pub newest_ahead_ms: i64,
    pub secret_key: Result<KeyPlace>,
    /// Since when all messages are held.
    pub held_since: Option<Timestamp>,
    /// How long ago the last backup was made, in milliseconds. Without any, counts from the first
    /// start.
    pub backup_age_ms: i64,
    /// The key that seals forms. All processes of the installation have the same one.
    pub form_key: String,
    /// The connections of all running processes.
    pub connections: Vec<ConnectionRecord>,
}

/// Examines the database, the clock and the key file of a configuration.
///
/// # Errors
/// Fails if a server of this release can't use the database.
pub async fn examine(config: &Config) -> std::result::Result<Examination, OpenError> {
    let store = Store::open_to_read(&config.database_url).await?;
    let examined = read(&store, config).await;
    store.close().await;
    examined
}

async fn read(store: &Store, config: &Config) -> std::result::Result<Examination, OpenError> {
    let program = store.program().await?;
    store.must_be_usable().await?;
    distribute::check(store).await?;
    let clock_ahead_ms = nodes::follow(store, &config.clock).await?;
    let is_installed = prices::version(&mut store.read().await?).await? > 0;
    let installation = if is_installed { Some(installed(store, config).await?) } else { None };
    Ok(Examination { program, clock_ahead_ms, installation })
}

async fn installed(store: &Store, config: &Config) -> std::result::Result<Installation, OpenError> {
    let now = config.clock.now();
    let mut conn = store.read().await?;
    upkeep::same_currency(&installation::currency(&mut conn).await?, &config.currency)?;
    let (last_id, _) = upkeep::last_ids(store, upkeep::shards(store).await?, now).await?;
    Ok(Installation {
        newest_ahead_ms: id_unix_ms(last_id) - now.unix_ms(),
        secret_key: check_key(store, &config.data_dir).await,
        held_since: hold::since(&mut conn).await?,
        backup_age_ms: now.ms_since(hold::last_backup(&mut conn).await?).max(0),
        form_key: installation::form_key(&mut conn).await?,
        connections: carriers::connections(&mut conn, now).await?,
    })
}
