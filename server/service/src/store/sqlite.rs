//! A SQLite file: how the file is made, and how connections to it are set up.

use std::path::Path;

/// The bytes that every SQLite file begins with.
pub(super) const FILE_START: &[u8] = b"SQLite format 3\0";

/// FULL syncs the log at each commit, so that what was answered survives a power cut. The cache (32
/// MiB) holds the pages that an upload of a million rows keeps writing to.
pub(super) const WRITER: &str = r"
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    PRAGMA busy_timeout = 10000;
    PRAGMA journal_size_limit = 67108864;
    PRAGMA cache_size = -32768";
/// Lets SQLite refuse a reader that tries to write, which is a fault of ours.
pub(super) const READER: &str = "PRAGMA query_only = ON; PRAGMA busy_timeout = 10000";

/// Makes the database's file and its folder, unless they exist. Phone numbers, texts and password
/// hashes are inside: only the owner may read the file, the folder, and the files that SQLite makes
/// beside.
pub(super) fn make_file(file: &Path) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
    }
    match make_new_file(file) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

pub(super) fn make_new_file(file: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file).map(drop)
}
