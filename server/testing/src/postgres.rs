//! A PostgreSQL server for a single test, which can stop and restart it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A server that is removed when this is dropped.
pub struct Server {
    /// The URL for the server's superuser.
    pub url: String,
    folder: PathBuf,
    _within: TempDir,
}

/// How PostgreSQL stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// PostgreSQL closes connections and rolls back transactions.
    Fast,
    /// Like a crash: at the next start, PostgreSQL recovers committed transactions from its log.
    Immediate,
}

impl End {
    const fn word(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Immediate => "immediate",
        }
    }
}

impl Server {
    pub fn start() -> Self {
        let within = tempfile::tempdir().unwrap();
        let folder = within.path().join("postgres");
        let started = script("start", &folder, &[]).stderr(Stdio::inherit()).output().unwrap();
        assert!(
            started.status.success(),
            "PostgreSQL doesn't start; `.make/setup postgres` gets it"
        );
        Self {
            url: String::from_utf8(started.stdout).unwrap().trim().to_owned(),
            folder,
            _within: within,
        }
    }

    /// Makes a base backup.
    pub fn back_up(&self) -> BaseBackup {
        let within = tempfile::tempdir().unwrap();
        let folder = within.path().join("postgres");
        self.must("copy", &[folder.to_str().unwrap()]);
        BaseBackup(Self { url: self.url.clone(), folder, _within: within })
    }

    /// Returns the server's folder, which contains `data`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn stop(&self, end: End) {
        self.must("stop", &[end.word()]);
    }

    /// Starts a stopped server in the same folder.
    pub fn start_again(&self) {
        self.must("start", &[]);
    }

    pub fn restart(&self, end: End) {
        self.must("restart", &[end.word()]);
    }

    fn must(&self, verb: &str, more: &[&str]) {
        let done = script(verb, &self.folder, more).stdout(Stdio::null()).status().unwrap();
        assert!(done.success(), "{verb} of PostgreSQL failed");
    }
}

/// A copy of a running server.
pub struct BaseBackup(Server);

impl BaseBackup {
    /// Removes the server that was copied, and starts the copy on its port.
    pub fn replace(self, lost: Server) -> Server {
        drop(lost);
        self.0.start_again();
        self.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing can be done about a failure here.
        let _ = script("remove", &self.folder, &[]).status();
    }
}

fn script(verb: &str, folder: &Path, more: &[&str]) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(root.join(".make/postgres"));
    command.arg(verb).arg(folder).args(more);
    command
}
