//! Examines a database and what belongs to it, for `heliograph doctor`. Changes nothing, so it may
//! run beside a server and on a database that was never served.

use domain::Timestamp;
use domain::carrier_figures::CarrierEvent;
use domain::ids::{compose_id, id_unix_ms};
use domain::records::ConnectionRecord;
use domain::timestamp::DAY_MS;
use store::error::{OpenError, Result};
use store::query::Conn;
use store::unmatched_receipts::{self, Selection};
use store::{Store, carrier_figures, carriers, hold, installation, prices};

use super::{distribute, nodes, upkeep};
use crate::Config;
use crate::accounts::key_check::{KeyPlace, check_key};

/// The length of the periods in which receipts with an unknown state are counted.
const HOUR_MS: i64 = 60 * 60 * 1000;
/// The maximum number of a carrier's unmatched receipts that are counted.
const UNMATCHED_MAX: i64 = 1000;

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
    /// Whether the database was restored or copied, and no server has opened it since.
    pub is_moved: bool,
    /// The carriers that are drained.
    pub drained: Vec<String>,
    /// How long ago the last backup was made, in milliseconds. Without any, counts from the first
    /// start.
    pub backup_age_ms: i64,
    /// The key that seals forms. All processes of the installation have the same one.
    pub form_key: String,
    /// The connections of all running processes.
    pub connections: Vec<ConnectionRecord>,
    /// The carriers with receipts that say nothing about our messages.
    pub useless_receipts: Vec<UselessReceipts>,
}

/// The receipts of a carrier in the last day that say nothing about our messages.
#[derive(Debug)]
pub struct UselessReceipts {
    pub carrier: String,
    /// Those that match no message, up to a limit.
    pub unmatched: usize,
    /// Those whose state isn't known.
    pub unknown_state: u64,
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
    let here = store.place().await?;
    let (last_id, _) = upkeep::last_ids(store, upkeep::shards(store).await?, now).await?;
    Ok(Installation {
        newest_ahead_ms: id_unix_ms(last_id) - now.unix_ms(),
        secret_key: check_key(store, &config.data_dir).await,
        held_since: hold::since(&mut conn).await?,
        is_moved: hold::known_place(&mut conn).await?.is_some_and(|known| known != here),
        drained: carriers::drained(&mut conn).await?,
        backup_age_ms: now.ms_since(hold::last_backup(&mut conn).await?).max(0),
        form_key: installation::form_key(&mut conn).await?,
        connections: carriers::connections(&mut conn, now).await?,
        useless_receipts: useless_receipts(&mut conn, config, now).await?,
    })
}

async fn useless_receipts(
    conn: Conn<'_>,
    config: &Config,
    now: Timestamp,
) -> Result<Vec<UselessReceipts>> {
    let day_ago = now.plus_ms(-DAY_MS);
    let counts = carrier_figures::since(conn, HOUR_MS, day_ago).await?;
    let mut found = Vec::new();
    for carrier in config.network.carriers.iter().map(|info| info.name.clone()) {
        let since = Selection::Newest(compose_id(day_ago.unix_ms(), 0));
        let unmatched = unmatched_receipts::list(conn, &carrier, since, UNMATCHED_MAX).await?.len();
        let counts = counts.get(&carrier);
        let unknown_state = counts.map_or(0, |counts| counts.get(CarrierEvent::UnknownState));
        if unmatched > 0 || unknown_state > 0 {
            found.push(UselessReceipts { carrier, unmatched, unknown_state });
        }
    }
    Ok(found)
}
