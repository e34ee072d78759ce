//! The folder of the spool files. With SQLite, it holds the rows of uploads until they are
//! messages.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

const EXTENSION: &str = "rows";
/// The extension of the lock file next to the folder. The serving process holds the lock, because
/// another process would delete the spool files as leftovers.
const LOCK: &str = "lock";

/// The folder of the spool files.
#[derive(Clone, Debug)]
pub(crate) struct SpoolFolder {
    folder: PathBuf,
    lock: Arc<Mutex<Option<File>>>,
}

impl SpoolFolder {
    /// Returns the spool folder in the data folder. The folder is created when it is first needed.
    pub(crate) fn within(data_dir: &Path) -> Self {
        Self::at(&data_dir.join("spool"))
    }

    /// Returns a folder with spool files, such as that of a backup.
    pub(crate) fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), lock: Arc::default() }
    }

    pub(crate) fn exists(&self) -> bool {
        self.folder.is_dir()
    }

    /// Creates the folder if it doesn't exist, and locks it for this process. Returns false if
    /// another process holds the lock.
    pub(crate) fn own(&self) -> io::Result<bool> {
        make_folder(&self.folder)?;
        if let Some(parent) = self.folder.parent() {
            File::open(parent)?.sync_all()?;
        }
        let lock = File::create(self.folder.with_added_extension(LOCK))?;
        if lock.try_lock().is_err() {
            return Ok(false);
        }
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = Some(lock);
        Ok(true)
    }

    /// Releases the lock on the folder for the next process that serves.
    pub(crate) fn disown(&self) {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Creates a file with a random name that only its owner may read, because it has phone numbers
    /// and texts.
    pub(crate) fn create(&self, random: [u8; 16]) -> io::Result<(String, File)> {
        let name = format!("{}.{EXTENSION}", hex::encode(random));
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(self.path(&name))?;
        Ok((name, file))
    }

    /// Syncs the folder, so that a new file survives a power failure.
    pub(crate) fn sync(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()
    }

    /// Removes a file. A missing file isn't an error.
    pub(crate) fn remove(&self, name: &str) {
        match std::fs::remove_file(self.path(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::error!(name, %error, "a spool file can't be removed");
            }
            _ => {}
        }
    }

    /// Links every file into another folder, or copies it if the folder is on another disk. Skips
    /// files that are already in the folder.
    pub(crate) fn link_into(&self, folder: &Path) -> io::Result<()> {
        for name in self.names()? {
            make_folder(folder)?;
            let (from, to) = (self.path(&name), folder.join(&name));
            match std::fs::hard_link(&from, &to) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                // The file was removed after it was listed, because its rows are messages.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => drop(std::fs::copy(&from, &to)?),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Returns the names of the spool files in the folder.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == EXTENSION)
                && let Some(name) = path.file_name()
            {
                names.push(name.to_string_lossy().into_owned());
            }
        }
        Ok(names)
    }
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
