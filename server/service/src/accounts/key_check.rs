//! Checks the key that seals secrets, without making one.

use std::path::{Path, PathBuf};

use store::error::{Fault, Result};
use store::{Store, installation, second_factors};

use super::sealing::{Keys, Sealing, read, refuse_lost};
use super::second_factor::sealed_for;

/// The place of the key that seals secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPlace {
    File(PathBuf),
    /// PostgreSQL only.
    Database,
    /// It is made when it is first needed.
    Nowhere,
}

/// Returns where the key is that seals secrets, after it has opened a second factor.
///
/// # Errors
/// `SecretKeyMissing`, or `Failed` if the key can't be read or is another one.
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
    if let Some((account_id, secret)) = second_factors::any(&mut conn).await? {
        let secrets: Vec<String> = of_file.into_iter().chain(of_database).collect();
        Keys::of(&secrets)?.open(&sealed_for(account_id), &secret)?;
    }
    Ok(place)
}
