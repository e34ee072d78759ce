//! First start, prices, backup.

use std::path::Path;

use domain::Timestamp;

use crate::error::{OpenError, Result};
use crate::store::{Store, backup, installation, messages};
use crate::{Config, Service};

/// Records the currency at first start and the prices whenever a start brings other ones. A command
/// beside the server (`keep`) leaves what is recorded as it is: it may run without the server's
/// environment, and must not change what sends cost.
pub(crate) async fn install(
    store: &Store,
    config: &Config,
    keep: bool,
    now: Timestamp,
) -> std::result::Result<(), OpenError> {
    {
        let mut conn = store.read().await?;
        let known = installation::prices_or_none(&mut conn).await?;
        if keep && known.is_some() {
            return Ok(());
        }
        if known == Some(config.prices) {
            return same_currency(&installation::currency(&mut conn).await?, &config.currency);
        }
    }
    let mut tx = store.begin().await?;
    installation::insert(&mut tx, &config.currency, now).await?;
    same_currency(&installation::currency(&mut tx).await?, &config.currency)?;
    if installation::prices_or_none(&mut tx).await? != Some(config.prices) {
        installation::insert_prices(&mut tx, config.prices, now).await?;
    }
    Ok(tx.commit().await?)
}

fn same_currency(stored: &str, wanted: &str) -> std::result::Result<(), OpenError> {
    if stored == wanted {
        return Ok(());
    }
    Err(OpenError::Currency {
        stored: stored.to_owned(),
        wanted: wanted.to_owned(),
    })
}

pub(crate) async fn greatest_message_id(store: &Store) -> Result<i64> {
    let mut conn = store.read().await?;
    messages::greatest(&mut conn).await
}

impl Service {
    /// Writes a copy of the database as it is now into a new file, while the service goes on.
    ///
    /// # Errors
    /// Broken, when the file exists or can't be written.
    pub async fn backup(&self, file: &Path) -> Result<()> {
        let mut conn = self.store().exclusive().await?;
        backup::copy(&mut conn, &file.to_string_lossy()).await
    }
}
