//! SQLite: how the file is created, and how connections to it are set up.

use std::path::Path;

/// The bytes at the start of every SQLite file.
pub(crate) const FILE_START: &[u8] = b"SQLite format 3\0";

/// Sets up the connection that writes. FULL syncs the log at each commit, so that acknowledged
/// writes survive a power failure. The cache (32 MiB) holds the pages that an upload of a million
/// rows keeps writing to.
pub(crate) const WRITER: &str = r"
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    PRAGMA busy_timeout = 10000;
    PRAGMA journal_size_limit = 67108864;
    PRAGMA cache_size = -32768";
/// Sets up a connection that only reads. Writing on it would be a bug, so SQLite refuses it.
pub(crate) const READER: &str = "PRAGMA query_only = ON; PRAGMA busy_timeout = 10000";

/// Creates the database file and its folder, unless they exist. Only the owner may read them and
/// the files that SQLite creates next to them, because they contain phone numbers, texts and
/// password hashes.
pub(crate) fn make_file(file: &Path) -> std::io::Result<()> {
    make_folder(file)?;
    match make_new_file(file) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Creates the folder of a file, which only its owner may read.
pub(crate) fn make_folder(file: &Path) -> std::io::Result<&Path> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    Ok(folder)
}

fn make_new_file(file: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file).map(drop)
}
