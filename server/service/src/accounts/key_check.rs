//! Checks the key that seals secrets, at the start of a process and for `heliograph doctor`.

use std::path::{Path, PathBuf};

use domain::WebhookId;
use store::error::{Error, Fault, Refusal, Result};
use store::{Store, installation, second_factors, webhooks};

use super::sealing::{Keys, Sealing, about_endpoint, read, refuse_lost};
use super::second_factor::sealed_for;
use crate::{Accounts, shards};

/// Where the key that seals secrets is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPlace {
    File(PathBuf),
    /// PostgreSQL only.
    Database,
    /// The key is created when it is first needed.
    Nowhere,
}

impl Accounts<'_> {
    /// Reads the keys, so that a process that can't read them ends at its start.
    ///
    /// # Errors
    /// `SecretKeyMissing` if there is no key file, but the newest sealed values need it.
    pub async fn load_keys(&self) -> Result<()> {
        let keys = self.keys().await?;
        let file = self.inner.sealing.path();
        // On PostgreSQL the key may be in the database.
        match must_open_newest(self.store(), |about, sealed| keys.open(about, sealed)).await {
            // The server starts, because only what is sealed needs the right key.
            Err(Error::Failed(Fault::Sealed)) if file.exists() => {
                tracing::error!(
                    file = %file.display(),
                    "this key doesn't open what was sealed last: is it the file of this database?"
                );
                Ok(())
            }
            Err(Error::Failed(Fault::Sealed)) => {
                Err(Refusal::SecretKeyMissing { file: file.display().to_string() }.into())
            }
            opened => opened,
        }
    }
}

/// Returns where the key that seals secrets is, after it has opened the newest secrets.
///
/// # Errors
/// `SecretKeyMissing`, or `Failed` if the key can't be read or is the wrong one.
pub(crate) async fn check_key(store: &Store, data_dir: &Path) -> Result<KeyPlace> {
    let file = Sealing::file(data_dir);
    let of_file = read(&file).map_err(Fault::File)?;
    let mut conn = store.read().await?;
    let is_shared = store.dialect().is_shared();
    let of_database = if is_shared { installation::sealing_key(&mut conn).await? } else { None };
    if of_file.is_none() && !is_shared {
        refuse_lost(&mut conn, &file).await?;
    }
    let place = match (&of_file, &of_database) {
        (Some(_), _) => KeyPlace::File(file),
        (None, Some(_)) => KeyPlace::Database,
        (None, None) => KeyPlace::Nowhere,
    };
    drop(conn);
    let secrets: Vec<String> = of_file.into_iter().chain(of_database).collect();
    must_open_newest(store, |about, sealed| Keys::of(&secrets)?.open(about, sealed)).await?;
    Ok(place)
}

/// Opens the newest sealed values: the secret of a second factor and, in each shard, that of an
/// endpoint. They were sealed with the key file, if there was one.
///
/// # Errors
/// `Failed` if the key is the wrong one.
async fn must_open_newest(
    store: &Store,
    open: impl Fn(&str, &str) -> Result<Vec<u8>>,
) -> Result<()> {
    let mut conn = store.read().await?;
    let second_factor = second_factors::newest(&mut conn).await?;
    let count = installation::shards(&mut conn).await?;
    drop(conn);
    if let Some((account_id, secret)) = second_factor {
        open(&sealed_for(account_id), &secret)?;
    }
    for shard in shards::all(count) {
        let endpoint = webhooks::newest_secret(&mut store.read_at(shard).await?).await?;
        if let Some((id, secret)) = endpoint {
            open(&about_endpoint(WebhookId(id)), &secret)?;
        }
    }
    Ok(())
}
