//! Encrypted backups, in the format of the program `age`.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use age::stream::{StreamReader, StreamWriter};
use age::x25519::Recipient;
use age::{DecryptError, Decryptor, Encryptor, Identity, IdentityFile};
use tempfile::NamedTempFile;

type Result<T> = std::result::Result<T, String>;

/// The beginning of an encrypted file.
const START: &[u8] = b"age-encryption.org/";
const EXISTS: &str = "the file exists already; choose another name";
const CHANGED: &str = "it is cut off, or was changed since it was made; use another backup";

/// Reads the recipients of the command line and of a file with one per line.
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

/// A file that is being written, which only its owner may read. It gets its final name once it is
/// complete. If it is dropped before, it is removed.
pub struct NewFile {
    file: PathBuf,
    part: NamedTempFile,
}

impl NewFile {
    pub fn begin(file: &Path) -> Result<Self> {
        if file.exists() {
            return Err(EXISTS.to_owned());
        }
        let prefix = file.file_name().ok_or("it isn't the name of a file")?;
        let part =
            tempfile::Builder::new().prefix(prefix).suffix(".part").tempfile_in(folder(file));
        Ok(Self { file: file.to_owned(), part: part.map_err(|error| error.to_string())? })
    }

    /// Returns the path of the incomplete file.
    pub fn part(&self) -> &Path {
        self.part.path()
    }

    /// Gives the file its final name, unless another file has that name meanwhile.
    pub fn publish(self) -> Result<()> {
        self.part.as_file().sync_all().map_err(|error| error.to_string())?;
        self.part.persist_noclobber(&self.file).map_err(|error| match error.error.kind() {
            ErrorKind::AlreadyExists => EXISTS.to_owned(),
            _ => error.to_string(),
        })?;
        let synced = File::open(folder(&self.file)).and_then(|folder| folder.sync_all());
        synced.map_err(|error| error.to_string())
    }
}

fn folder(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// An encrypted file that is being written.
pub struct Encrypting {
    new: NewFile,
    writer: StreamWriter<File>,
}

impl Encrypting {
    /// Begins a new file that only its owner may read.
    pub fn begin(file: &Path, recipients: &[Recipient]) -> Result<Self> {
        let new = NewFile::begin(file)?;
        let recipients = recipients.iter().map(|recipient| recipient as &dyn age::Recipient);
        let encryptor = Encryptor::with_recipients(recipients).map_err(|e| e.to_string())?;
        let part = new.part.as_file().try_clone();
        let writer = part.and_then(|part| encryptor.wrap_output(part));
        Ok(Self { new, writer: writer.map_err(|error| error.to_string())? })
    }

    /// Returns the writer that encrypts.
    pub fn writer(&mut self) -> &mut StreamWriter<File> {
        &mut self.writer
    }

    pub fn end(self) -> Result<()> {
        self.writer.finish().map_err(|error| error.to_string())?;
        self.new.publish()
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
    /// Decrypts the file once to check that it is complete. Returns `None` if the file isn't
    /// encrypted. `key_file` is a file that `age-keygen` wrote.
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
        // Only the end of the file shows whether it is complete.
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
            DecryptError::UnknownFormat => format!("{CHANGED}, or a newer version of age made it"),
            _ => CHANGED.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use age::x25519::Identity;

    use super::*;

    #[test]
    fn of_two_backups_to_one_name_the_first_stays_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("backup");
        let begin = || {
            let mut new = Encrypting::begin(&file, &[Identity::generate().to_public()]).unwrap();
            new.writer().write_all(b"rows").unwrap();
            new
        };
        let (first, second, cut) = (begin(), begin(), begin());
        first.end().unwrap();
        let whole = std::fs::read(&file).unwrap();
        assert_eq!(second.end().unwrap_err(), EXISTS);
        drop(cut);
        assert!(std::fs::read(&file).unwrap() == whole);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
