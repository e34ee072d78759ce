//! `heliograph backup` and `heliograph restore`.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Read as _, Seek as _, Write};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use age::x25519::Recipient;
use percent_encoding::percent_decode_str;
use service::{OpenError, Service};
use tempfile::TempDir;
use url::Url;

use super::encrypted::{Encrypted, Encrypting, NewFile};
use super::{CommandError, Output};
use crate::config::Settings;

/// The text that is printed after a restore.
const NEXT: &str = "Copy secret.key into data_dir if it was there, then start the server. It holds \
                    all messages until you run `heliograph message reconcile`.";

/// The name of the database in an encrypted backup of SQLite. The folder of its uploads is named
/// like it, too.
const DATABASE: &str = "heliograph.db";

type Result<T> = std::result::Result<T, CommandError>;

/// The reason for a failure. The caller adds the name of the file.
type Why = String;

/// Makes a backup, which is encrypted if there are recipients.
pub async fn backup(
    service: &Service,
    settings: &Settings,
    file: &Path,
    recipients: &[Recipient],
    output: Output,
) -> Result<()> {
    let shown = file.display().to_string();
    let refused = |why: Why| CommandError::Refused(format!("can't copy to {shown}: {why}"));
    let is_file = settings.database_url.starts_with("sqlite:");
    if !is_file && service.operations().is_distributed() {
        let why = "the database is distributed; back up each server as docs/SCALING.md says";
        return Err(refused(why.to_owned()));
    }
    let begun = service.clock().now();
    let url = &settings.database_url;
    let made = match (is_file, recipients.is_empty()) {
        (true, true) => copy(service, file).await,
        (true, false) => copy_encrypted(service, &settings.data_dir, file, recipients).await,
        (false, true) => dump(url, file),
        (false, false) => dump_encrypted(url, file, recipients),
    };
    made.map_err(refused)?;
    service.operations().note_backup(begun).await?;
    let uploads = file.with_added_extension("spool");
    Ok(output.print(&BTreeMap::from([("file", &shown)]), |_| {
        if uploads.is_dir() {
            format!("Copied to {shown}, and uploads to {}. Keep both.", uploads.display())
        } else {
            format!("Copied to {shown}.")
        }
    })?)
}

/// Restores a backup. `key_file` contains the key if the backup is encrypted.
pub fn restore(
    settings: &Settings,
    file: &Path,
    key_file: Option<&Path>,
    output: Output,
) -> Result<()> {
    let shown = file.display().to_string();
    let refused = |why: Why| CommandError::Refused(format!("can't restore {shown}: {why}"));
    let encrypted = Encrypted::checked(file, key_file).map_err(refused)?;
    let Settings { database_url: url, data_dir, .. } = settings;
    match (encrypted, url.starts_with("sqlite:")) {
        (None, true) => Service::restore(url, data_dir, file)?,
        (Some(encrypted), true) => {
            let folder = temporary(data_dir).map_err(refused)?;
            let unpacked = unpack(&encrypted, folder.path()).map_err(refused)?;
            match Service::restore(url, data_dir, &unpacked) {
                Err(OpenError::UploadsMissing(_)) => {
                    return Err(refused("uploads that it needs are missing from it".to_owned()));
                }
                restored => restored?,
            }
        }
        (None, false) => {
            let restoring = restoring(url).map_err(refused)?;
            run(restoring, Some(file)).map_err(refused)?;
        }
        (Some(encrypted), false) => load(url, &encrypted).map_err(refused)?,
    }
    Ok(output
        .print(&BTreeMap::from([("file", &shown)]), |_| format!("Restored {shown}. {NEXT}"))?)
}

async fn copy(service: &Service, file: &Path) -> std::result::Result<(), Why> {
    let copied = service.operations().copy_to(file).await;
    copied.map_err(|error| error.for_operator().clone())
}

/// Copies a SQLite database and its uploads into an encrypted archive. The unencrypted copy is in a
/// temporary folder in `data_dir`, where the uploads are, too.
async fn copy_encrypted(
    service: &Service,
    data_dir: &Path,
    file: &Path,
    recipients: &[Recipient],
) -> std::result::Result<(), Why> {
    let mut encrypting = Encrypting::begin(file, recipients)?;
    let folder = temporary(data_dir)?;
    copy(service, &folder.path().join(DATABASE)).await?;
    let mut archive = tar::Builder::new(encrypting.writer());
    let packed = append(&mut archive, folder.path(), Path::new(""));
    let packed = packed.and_then(|()| archive.finish());
    drop(archive);
    packed.map_err(|error| error.to_string())?;
    encrypting.end()
}

/// Appends the contents of a folder to an archive. An upload may still be growing, so no more of a
/// file is read than its header says.
fn append(archive: &mut tar::Builder<impl Write>, folder: &Path, name: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), name.join(entry.file_name()));
        let stat = entry.metadata()?;
        if stat.is_dir() {
            archive.append_dir(&name, &path)?;
            append(archive, &path, &name)?;
            continue;
        }
        let mut header = tar::Header::new_gnu();
        header.set_metadata(&stat);
        let mut file = File::open(&path)?.take(stat.len());
        archive.append_data(&mut header, &name, &mut file)?;
        if file.limit() > 0 {
            return Err(io::Error::other(format!("{} has become shorter", path.display())));
        }
    }
    Ok(())
}

/// Decrypts an archive into a folder. Returns the database in it.
fn unpack(encrypted: &Encrypted, folder: &Path) -> std::result::Result<PathBuf, Why> {
    let mut archive = tar::Archive::new(encrypted.open()?);
    let unpacked = archive.unpack(folder);
    let database = folder.join(DATABASE);
    if unpacked.is_err() || !database.exists() {
        let error = unpacked.err().map_or_else(String::new, |error| format!(" ({error})"));
        return Err(format!("it isn't a backup of a SQLite database{error}"));
    }
    Ok(database)
}

/// Creates a folder that only its owner may read. It is removed on drop.
fn temporary(data_dir: &Path) -> std::result::Result<TempDir, Why> {
    let mut new = tempfile::Builder::new();
    new.prefix("backup-").permissions(Permissions::from_mode(0o700));
    let made = DirBuilder::new().recursive(true).mode(0o700).create(data_dir);
    let made = made.and_then(|()| new.tempdir_in(data_dir));
    made.map_err(|error| format!("{}: {error}", data_dir.display()))
}

/// Dumps a PostgreSQL database into a new file, and reads the list of its contents back.
fn dump(url: &str, file: &Path) -> std::result::Result<(), String> {
    let new = NewFile::begin(file)?;
    let mut dumping = tool("pg_dump", url)?;
    dumping.args(["--format=custom", "--file"]).arg(new.part());
    run(dumping, None)?;
    let mut listing = Command::new("pg_restore");
    listing.arg("--list");
    if !run(listing, Some(new.part()))?.contains("TABLE DATA") {
        return Err("pg_dump wrote no tables".to_owned());
    }
    new.publish()
}

/// Dumps a PostgreSQL database into a new file, which is encrypted as it is written.
fn dump_encrypted(
    url: &str,
    file: &Path,
    recipients: &[Recipient],
) -> std::result::Result<(), Why> {
    let mut encrypting = Encrypting::begin(file, recipients)?;
    let mut dumping = tool("pg_dump", url)?;
    dumping.arg("--format=custom").stdout(Stdio::piped());
    let mut running = Running::start(dumping)?;
    let copied = match running.child.stdout.take() {
        Some(mut dump) => std::io::copy(&mut dump, encrypting.writer()),
        None => Ok(0),
    };
    // If writing failed, such as on a full disk, the tool's pipe is broken, too.
    let ended = running.end();
    copied.map_err(|error| error.to_string())?;
    ended?;
    encrypting.end()
}

/// Restores a dump that is decrypted as it is read.
fn load(url: &str, encrypted: &Encrypted) -> std::result::Result<(), Why> {
    let mut dump = encrypted.open()?;
    let mut restoring = restoring(url)?;
    restoring.stdin(Stdio::piped());
    let mut running = Running::start(restoring)?;
    let copied = match running.child.stdin.take() {
        Some(mut input) => std::io::copy(&mut dump, &mut input),
        None => Ok(0),
    };
    // If the tool failed, the pipe is broken, too.
    running.end()?;
    copied.map(drop).map_err(|error| error.to_string())
}

fn restoring(url: &str) -> std::result::Result<Command, Why> {
    let mut restoring = tool("pg_restore", url)?;
    restoring.args(["--no-owner", "--exit-on-error", "--single-transaction"]);
    Ok(restoring)
}

/// Prepares a tool of PostgreSQL. Other users of the machine can read command-line arguments, so
/// the password goes into the environment.
fn tool(name: &str, url: &str) -> std::result::Result<Command, String> {
    let mut url = Url::parse(url).map_err(|error| format!("the database URL: {error}"))?;
    let mut command = Command::new(name);
    if let Some(password) = url.password() {
        command.env("PGPASSWORD", percent_decode_str(password).decode_utf8_lossy().as_ref());
    }
    // A URL without a host has no password either.
    let _ = url.set_password(None);
    command.arg(format!("--dbname={url}"));
    Ok(command)
}

/// Runs a tool on a file, and returns what it printed.
fn run(mut command: Command, file: Option<&Path>) -> std::result::Result<String, Why> {
    command.args(file).stdout(Stdio::piped());
    let mut running = Running::start(command)?;
    let mut printed = Vec::new();
    if let Some(mut output) = running.child.stdout.take() {
        output.read_to_end(&mut printed).map_err(|error| error.to_string())?;
    }
    running.end()?;
    Ok(String::from_utf8_lossy(&printed).into_owned())
}

/// A running tool. Its errors go into a file, because a full pipe without a reader would block it.
struct Running {
    name: String,
    child: Child,
    errors: File,
}

impl Running {
    fn start(mut command: Command) -> std::result::Result<Self, Why> {
        let name = command.get_program().to_string_lossy().into_owned();
        let errors = tempfile::tempfile().and_then(|file| Ok((file.try_clone()?, file)));
        let (errors, written) = errors.map_err(|error| error.to_string())?;
        let child = command.stderr(written).spawn().map_err(|error| {
            format!("{name} can't be started: {error}; install PostgreSQL's client programs")
        })?;
        Ok(Self { name, child, errors })
    }

    /// Waits for the end.
    fn end(mut self) -> std::result::Result<(), Why> {
        let ended = self.child.wait().map_err(|error| error.to_string())?;
        if ended.success() {
            return Ok(());
        }
        let mut said = Vec::new();
        let read = self.errors.rewind().and_then(|()| self.errors.read_to_end(&mut said));
        read.map_err(|error| error.to_string())?;
        Err(format!("{}: {}", self.name, String::from_utf8_lossy(&said).trim()))
    }
}
