//! Known devices: browsers in which an account was signed in before. On a known device, a
//! stranger's failed sign-ins don't lock the owner out.
//!
//! A known device has a cookie that is signed with the hash of the account's password. The server
//! doesn't store the cookie, and a new password invalidates it. The cookie also contains the
//! account's ID, which gives no access.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::Accounts;
use crate::entropy::Entropy;
use store::accounts;
use store::error::Result;

const NONCE_BYTES: usize = 16;
/// Separates this use of the hash from others.
const PURPOSE: &[u8] = b"heliograph known device";

impl Accounts<'_> {
    /// Returns the device ID that the client's cookie claims. Doesn't verify the cookie's
    /// signature.
    pub(crate) fn claimed_device(&self) -> Option<String> {
        let (_, signed) = self.device_cookie.as_deref()?.split_once('.')?;
        let bytes = hex::decode(signed).ok()?;
        Some(hex::encode(bytes.first_chunk::<NONCE_BYTES>()?))
    }

    /// Returns the client's device ID, if the account was signed in on that device before.
    pub(crate) async fn known_device(&self, email: &str) -> Result<Option<String>> {
        let Some(cookie) = &self.device_cookie else {
            return Ok(None);
        };
        let row = accounts::by_email(&mut self.store().read().await?, email).await?;
        Ok(row.and_then(|row| name(&row.password_hash, cookie)))
    }

    /// Returns the client's device ID, if the account with this ID was signed in on that device
    /// before.
    pub(crate) async fn known_device_of(&self, account_id: i64) -> Result<Option<String>> {
        let Some(cookie) = &self.device_cookie else {
            return Ok(None);
        };
        let row = accounts::by_id(&mut self.store().read().await?, account_id).await?;
        Ok(row.and_then(|row| name(&row.password_hash, cookie)))
    }

    /// Returns a new cookie for a device on which this account has just signed in. `None` if there
    /// is no such account.
    pub async fn make_device_cookie(&self, account_id: i64) -> Result<Option<String>> {
        let row = accounts::by_id(&mut self.store().read().await?, account_id).await?;
        Ok(row.and_then(|row| make(account_id, &row.password_hash, self.entropy())))
    }
}

/// Returns the ID of the account that last signed in on a device. The caller must not trust the ID,
/// because the user of the browser can change the cookie.
pub fn account_of_device(cookie: &str) -> Option<i64> {
    cookie.split_once('.')?.0.parse().ok()
}

fn make(account_id: i64, password_hash: &str, entropy: &Entropy) -> Option<String> {
    let nonce: [u8; NONCE_BYTES] = entropy.bytes();
    let tag = mac(password_hash, &nonce)?.finalize().into_bytes();
    let signed = hex::encode([nonce.as_slice(), tag.as_slice()].concat());
    Some(format!("{account_id}.{signed}"))
}

/// Returns the device ID in a cookie. `None` if the cookie belongs to another account or an older
/// password.
fn name(password_hash: &str, cookie: &str) -> Option<String> {
    let (_, signed) = cookie.split_once('.')?;
    let bytes = hex::decode(signed).ok()?;
    let (nonce, tag) = bytes.split_first_chunk::<NONCE_BYTES>()?;
    // Compares in constant time.
    mac(password_hash, nonce)?.verify_slice(tag).ok()?;
    Some(hex::encode(nonce))
}

fn mac(password_hash: &str, nonce: &[u8; NONCE_BYTES]) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(password_hash.as_bytes()).ok()?;
    mac.update(PURPOSE);
    mac.update(nonce);
    Some(mac)
}
