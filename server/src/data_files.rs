//! The files that the service keeps, their owners and permissions. If root creates files, typically
//! by `sudo heliograph`, the service's own user can't start the server.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf, absolute};

use rustix::process::{getegid, geteuid};

use crate::config::Settings;

/// The names of the file with the key that seals secrets, and of the folder of spooled uploads.
const KEY: &str = "secret.key";
const SPOOL: &str = "spool";
/// The name of the file with the time of the last commit on PostgreSQL.
const LAST_COMMIT: &str = "last_commit";
/// The end of the names of lock files, which are empty.
const LOCK: &str = ".lock";
/// The ends of the names of files that SQLite makes beside a database.
const BESIDE_DATABASE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// The user and the group that files belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pub uid: u32,
    pub gid: u32,
}

impl Owner {
    pub fn of(path: &Path) -> io::Result<Self> {
        std::fs::metadata(path).map(|metadata| Self::read(&metadata))
    }

    /// Returns the user that this process acts as.
    pub fn of_process() -> Self {
        Self { uid: geteuid().as_raw(), gid: getegid().as_raw() }
    }

    pub fn is_root(self) -> bool {
        self.uid == 0
    }

    /// Whether the mode of a file lets this user read it. True if the file can't be examined.
    pub fn reads(self, file: &Path) -> bool {
        let Ok(metadata) = std::fs::metadata(file) else { return true };
        let owner = Self::read(&metadata);
        let bit = match () {
            () if owner.uid == self.uid => 0o400,
            () if owner.gid == self.gid => 0o040,
            () => 0o004,
        };
        self.is_root() || metadata.mode() & bit != 0
    }

    fn read(metadata: &Metadata) -> Self {
        Self { uid: metadata.uid(), gid: metadata.gid() }
    }
}

/// Returns a sentence with the command that gives the service's files to `owner`. Returns `None` if
/// all of them belong to it.
pub fn owners_to_repair(settings: &Settings, owner: Owner) -> Option<String> {
    let folder = std::iter::once(settings.data_dir.clone());
    let files = folder.chain(files(settings));
    let foreign: Vec<String> = files
        .filter(|file| Owner::of(file).is_ok_and(|other| other.uid != owner.uid))
        .map(|file| shown(&file))
        .collect();
    let Owner { uid, gid } = owner;
    (!foreign.is_empty()).then(|| {
        format!(
            "Files of the service don't belong to its user {uid}, which happens after `sudo \
             heliograph`. Run `sudo chown {uid}:{gid} {}`",
            foreign.join(" ")
        )
    })
}

/// Returns a sentence with the command that hides the service's files from other users. Returns
/// `None` if other users have no access.
pub fn permissions_to_repair(settings: &Settings) -> Option<String> {
    let open: Vec<String> = files(settings)
        .filter(|file| !file.to_string_lossy().ends_with(LOCK))
        .filter(|file| mode(file) & 0o077 != 0)
        .map(|file| shown(&file))
        .collect();
    (!open.is_empty()).then(|| {
        let open = open.join(" ");
        format!("Other users may read secrets, numbers and texts. Run `sudo chmod go= {open}`")
    })
}

/// Returns whether every user of the machine may read a file.
pub fn everybody_reads(file: &Path) -> bool {
    mode(file) & 0o004 != 0
}

/// Returns the folders that grow: `data_dir`, and the folder of a SQLite database.
pub fn folders(settings: &Settings) -> BTreeSet<PathBuf> {
    let database = service::file_of_url(&settings.database_url).and_then(Path::parent);
    let folders = [Some(settings.data_dir.as_path()), database].into_iter().flatten();
    folders.map(whole).collect()
}

/// Returns the free bytes of the disk that has a folder.
///
/// # Errors
/// The disk can't be read.
pub fn free_bytes(folder: &Path) -> std::io::Result<u64> {
    // A folder that the first start creates will be on the disk of its parent.
    let existing = folder.ancestors().find(|folder| folder.exists()).unwrap_or(folder);
    let disk = rustix::fs::statvfs(existing)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Returns a path for a shell.
pub fn shown(path: &Path) -> String {
    let text = whole(path).display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:".contains(c);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

fn whole(path: &Path) -> PathBuf {
    absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn mode(file: &Path) -> u32 {
    std::fs::metadata(file).map_or(0, |metadata| metadata.permissions().mode())
}

/// Returns the files that the service keeps and that exist, and the folder of uploads.
fn files(settings: &Settings) -> impl Iterator<Item = PathBuf> + use<> {
    let data = |name: &str| whole(&settings.data_dir.join(name));
    let spool = data(SPOOL);
    let spooled = std::fs::read_dir(&spool).into_iter().flatten();
    let mut files: BTreeSet<PathBuf> = spooled.filter_map(|file| Some(file.ok()?.path())).collect();
    files.extend([data(KEY), data(LAST_COMMIT), data(&format!("{SPOOL}{LOCK}")), spool]);
    if let Some(database) = service::file_of_url(&settings.database_url) {
        let name = whole(database).display().to_string();
        files.extend(BESIDE_DATABASE.map(|end| PathBuf::from(format!("{name}{end}"))));
        files.extend([PathBuf::from(format!("{name}{LOCK}")), PathBuf::from(name)]);
    }
    files.into_iter().filter(|file| file.exists())
}
