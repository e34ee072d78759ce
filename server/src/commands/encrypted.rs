//! Encrypted backups, in the format of the program `age`.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use age::stream::{StreamReader, StreamWriter};
use age::x25519::Recipient;
use age::{DecryptError, Decryptor, Encryptor, Identity, IdentityFile};

type Result<T> = std::result::Result<T, String>;

/// The beginning of an encrypted file.
const START: &[u8] = b"age-encryption.org/";
const CHANGED: &str = "it is cut off, or was changed since it was made; use another backup";

/// Reads the recipients of the command line and of a file with one a line.
pub fn recipients(named: &[String], file: Option<&Path>) -> Result<Vec<Recipient>> {
    let listed = match file {
        Some(file) => {
            std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?
        }
        None => String::new(),
    };
    let is_meant = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let listed = listed.lines().map(str::trim).filter(is_meant);
    let all = named.iter().map(String::as_str).chain(listed);
    let parse = |text: &str| {
        text.parse().map_err(|_| format!("{text} isn't a recipient: age1 and 58 characters"))
    };
    let recipients: Result<Vec<Recipient>> = all.map(parse).collect();
    match (recipients?, file) {
        (none, Some(file)) if none.is_empty() => {
            Err(format!("{} has no recipient", file.display()))
        }
        (recipients, _) => Ok(recipients),
    }
}

/// An encrypted file that is being written. It gets its name once it is whole.
pub struct Encrypting {
    file: PathBuf,
    part: PathBuf,
    writer: StreamWriter<File>,
}

impl Encrypting {
    /// Begins a new file that only its owner may read.
    pub fn begin(file: &Path, recipients: &[Recipient]) -> Result<Self> {
        if file.exists() {
            return Err("the file exists already; choose another name".to_owned());
        }
        let recipients = recipients.iter().map(|recipient| recipient as &dyn age::Recipient);
        let encryptor = Encryptor::with_recipients(recipients).map_err(|e| e.to_string())?;
        let part = file.with_added_extension("part");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let writer = options.open(&part).and_then(|part| encryptor.wrap_output(part));
        let writer = writer.map_err(|error| error.to_string())?;
        Ok(Self { file: file.to_owned(), part, writer })
    }

    /// Returns where to write what is encrypted.
    pub fn writer(&mut self) -> &mut StreamWriter<File> {
        &mut self.writer
    }

    pub fn end(self) -> std::io::Result<()> {
        self.writer.finish()?.sync_all()?;
        std::fs::rename(&self.part, &self.file)
    }
}

/// An encrypted file and the keys that may open it.
pub struct Encrypted {
    file: PathBuf,
    identities: Vec<Box<dyn Identity>>,
    /// The file that the keys come from.
    key_file: PathBuf,
}

impl Encrypted {
    /// Returns the encrypted file, after it was read whole. Returns `None` if the file isn't
    /// encrypted. `key_file` is a file as `age-keygen` writes it.
    pub fn checked(file: &Path, key_file: Option<&Path>) -> Result<Option<Self>> {
        let mut start = Vec::new();
        let opened =
            File::open(file).and_then(|file| file.take(START.len() as u64).read_to_end(&mut start));
        opened.map_err(|error| error.to_string())?;
        let key_file = match (start == START, key_file) {
            (true, Some(key_file)) => key_file,
            (true, None) => {
                return Err("it is encrypted: name the file of its key with --identity".to_owned());
            }
            (false, None) => return Ok(None),
            (false, Some(_)) => {
                return Err("it isn't encrypted, or is cut off: leave out --identity".to_owned());
            }
        };
        let refused = |why: String| format!("{}: {why}", key_file.display());
        let keys = File::open(key_file).map(BufReader::new).and_then(IdentityFile::from_buffer);
        let keys = keys.map_err(|error| refused(error.to_string()))?;
        let identities = keys.into_identities().map_err(|error| refused(error.to_string()))?;
        let encrypted = Self { file: file.to_owned(), identities, key_file: key_file.to_owned() };
        // Only the end of the file shows whether it is whole.
        std::io::copy(&mut encrypted.open()?, &mut std::io::sink())
            .map_err(|_| CHANGED.to_owned())?;
        Ok(Some(encrypted))
    }

    /// Decrypts the file while it is read.
    pub fn open(&self) -> Result<StreamReader<BufReader<File>>> {
        let file = File::open(&self.file).map_err(|error| error.to_string())?;
        let identities = self.identities.iter().map(|identity| &**identity);
        let decrypted = Decryptor::new_buffered(BufReader::new(file));
        let decrypted = decrypted.and_then(|file| file.decrypt(identities));
        decrypted.map_err(|error| match error {
            DecryptError::NoMatchingKeys => {
                format!("no key in {} opens it", self.key_file.display())
            }
            DecryptError::UnknownFormat => "a newer version of age made it".to_owned(),
            _ => CHANGED.to_owned(),
        })
    }
}
