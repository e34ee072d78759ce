//! Sealing: encryption of stored values that the service must be able to read again.
//!
//! The key is in a file in the data folder, so a copy of the database alone reveals nothing. On
//! SQLite, the file is created when the key is first needed. On PostgreSQL, each process has its
//! own data folder, so the key is in the database, unless the operator puts a key file into every
//! process's folder.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce};
use domain::WebhookId;
use domain::verify::SECRET_BYTES;
use hkdf::Hkdf;
use sha2::Sha256;
use tokio::sync::OnceCell;

use crate::Accounts;
use crate::run_blocking;
use crate::transactions::work;
use store::error::{Error, Fault, Refusal, Result};
use store::installation;
use store::query::Conn;

const FILE: &str = "secret.key";
const NONCE_BYTES: usize = 12;
const KEY_BYTES: usize = 32;
/// Separates the key that is derived here from keys for other uses of the same secret.
const PURPOSE: &[u8] = b"heliograph sealed in the database";
/// Like [`PURPOSE`], for the secret of one-time codes.
const CODES: &[u8] = b"heliograph one-time codes";
/// Like [`PURPOSE`], for the hashes of erased numbers.
const ERASED: &[u8] = b"heliograph erased numbers";

/// The keys of this installation, loaded when they are first needed.
pub(crate) struct Sealing {
    file: PathBuf,
    keys: OnceCell<Keys>,
}

/// The keys that are derived from the secret.
pub(super) struct Keys {
    /// The first key seals. Unsealing tries each key.
    ciphers: Vec<ChaCha20Poly1305>,
    /// One-time codes are derived from it.
    codes: [u8; SECRET_BYTES],
    /// Hashes erased numbers. On PostgreSQL it is derived from the key in the database, even if
    /// there is a key file. The file may be added later, and the stored hashes can't be computed
    /// again.
    erased: [u8; SECRET_BYTES],
}

impl Keys {
    /// Derives the keys from the secrets. The first secret is for sealing and codes, and the last
    /// one for hashing erased numbers.
    pub(super) fn of(secrets: &[String]) -> Result<Self> {
        let ciphers = secrets.iter().map(|text| cipher(text.trim())).collect::<Result<_>>()?;
        let missing = Error::Failed(Fault::Sealed);
        let Some((first, last)) = secrets.first().zip(secrets.last()) else { return Err(missing) };
        let codes = derived(first.trim(), CODES)?;
        Ok(Self { ciphers, codes, erased: derived(last.trim(), ERASED)? })
    }

    /// Decrypts a text that [`Accounts::seal`] encrypted.
    pub(super) fn open(&self, about: &str, sealed: &str) -> Result<Vec<u8>> {
        let bytes = hex::decode(sealed).map_err(|_| Fault::Sealed)?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>().ok_or(Fault::Sealed)?;
        let open = |key: &ChaCha20Poly1305| {
            let payload = Payload { msg: sealed, aad: about.as_bytes() };
            key.decrypt(&Nonce::from(*nonce), payload).ok()
        };
        self.ciphers.iter().find_map(open).ok_or(Error::Failed(Fault::Sealed))
    }
}

impl Sealing {
    pub(crate) fn within(data_dir: &Path) -> Self {
        Self { file: data_dir.join(FILE), keys: OnceCell::new() }
    }

    pub(crate) fn file(data_dir: &Path) -> PathBuf {
        data_dir.join(FILE)
    }

    /// Returns the path of the key file.
    pub(super) fn path(&self) -> &Path {
        &self.file
    }
}

impl Accounts<'_> {
    /// Encrypts a text. Decrypting it requires the same `about`.
    pub(crate) async fn seal(&self, about: &str, text: &[u8]) -> Result<String> {
        let nonce: [u8; NONCE_BYTES] = self.entropy().bytes();
        let payload = Payload { msg: text, aad: about.as_bytes() };
        let keys = &self.keys().await?.ciphers;
        let sealed = keys.first().and_then(|key| key.encrypt(&Nonce::from(nonce), payload).ok());
        let sealed = sealed.ok_or(Error::Failed(Fault::Sealed))?;
        Ok(hex::encode([nonce.as_slice(), &sealed].concat()))
    }

    /// Decrypts a text that [`Accounts::seal`] encrypted.
    ///
    /// # Errors
    /// `Failed` if the text was changed, or if the key that sealed it is missing.
    pub(crate) async fn unseal(&self, about: &str, sealed: &str) -> Result<Vec<u8>> {
        self.keys().await?.open(about, sealed)
    }

    /// Returns the secret that one-time codes are derived from. All processes have the same one.
    pub(crate) async fn code_secret(&self) -> Result<[u8; SECRET_BYTES]> {
        Ok(self.keys().await?.codes)
    }

    /// Returns the key that erased numbers are hashed with. All processes have the same one.
    pub(crate) async fn erased_key(&self) -> Result<[u8; SECRET_BYTES]> {
        Ok(self.keys().await?.erased)
    }

    pub(super) async fn keys(&self) -> Result<&Keys> {
        let keys = self.inner.sealing.keys.get_or_try_init(|| async {
            let (file, fresh) = (self.inner.sealing.file.clone(), self.entropy().bytes());
            let shared = self.store().dialect().is_shared();
            if !shared && !file.exists() {
                refuse_lost(&mut self.store().read().await?, &file).await?;
            }
            let of_file = run_blocking(move || {
                if shared { read(&file) } else { read_or_make(&file, &fresh).map(Some) }
            });
            let of_file = of_file.await?.map_err(Fault::File)?;
            let of_database = if shared { Some(self.key_of_database(&fresh).await?) } else { None };
            let texts: Vec<String> = of_file.into_iter().chain(of_database).collect();
            Keys::of(&texts)
        });
        keys.await
    }

    /// Returns the key in the database, which all processes share. The first process that needs the
    /// key creates it.
    async fn key_of_database(&self, fresh: &[u8; KEY_BYTES]) -> Result<String> {
        let stored = installation::sealing_key(&mut self.store().read().await?).await?;
        if let Some(stored) = stored {
            return Ok(stored);
        }
        let fresh = hex::encode(fresh);
        self.in_transaction(work!(|tx, _| {
            installation::keep_sealing_key(tx, &fresh).await?;
            let stored = installation::sealing_key(tx).await?;
            stored.ok_or(Error::Failed(Fault::Missing("installation")))
        }))
        .await
    }
}

/// Refuses to go on without the key file if something is sealed, because a fresh key would not open
/// it.
///
/// # Errors
/// `SecretKeyMissing`.
pub(super) async fn refuse_lost(conn: Conn<'_>, file: &Path) -> Result<()> {
    if installation::has_sealed(conn).await? {
        let file = file.display().to_string();
        return Err(Refusal::SecretKeyMissing { file }.into());
    }
    Ok(())
}

/// Returns what [`Accounts::seal`] binds an endpoint's secret to, so that it can't be moved to
/// another endpoint.
pub(crate) fn about_endpoint(id: WebhookId) -> String {
    format!("webhook {id}")
}

fn cipher(secret: &str) -> Result<ChaCha20Poly1305> {
    Ok(ChaCha20Poly1305::new(&Key::from(derived(secret, PURPOSE)?)))
}

fn derived(secret: &str, purpose: &[u8]) -> Result<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    let hkdf = Hkdf::<Sha256>::new(None, secret.as_bytes());
    hkdf.expand(purpose, &mut key).map_err(|_| Fault::Sealed)?;
    Ok(key)
}

/// Reads the key file. Returns `None` if there is no such file. Refuses a file without a key, such
/// as an empty one, because a key could be derived from any text.
pub(crate) fn read(file: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(file) {
        Ok(text) if hex::decode(text.trim()).is_ok_and(|key| key.len() == KEY_BYTES) => {
            Ok(Some(text))
        }
        Ok(_) => {
            let why = format!("{} isn't a key of 64 hex digits; restore its copy", file.display());
            Err(io::Error::new(io::ErrorKind::InvalidData, why))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads the key file, and creates it if it is missing. If two processes create it at once, both
/// use the file of the first one.
fn read_or_make(file: &Path, fresh: &[u8; KEY_BYTES]) -> io::Result<String> {
    if let Some(text) = read(file)? {
        return Ok(text);
    }
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    // A hard link appears with its full content or not at all, even after a crash while writing.
    let name = format!("{FILE}.{}", hex::encode(&fresh[..4]));
    let beside = file.with_file_name(name);
    let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    new.write_all(format!("{}\n", hex::encode(fresh)).as_bytes())?;
    new.sync_all()?;
    let linked = fs::hard_link(&beside, file);
    fs::remove_file(&beside)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    if let Some(folder) = file.parent() {
        fs::File::open(folder)?.sync_all()?;
    }
    fs::read_to_string(file)
}
