//! A PostgreSQL server for a single test, which can stop and restart it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::faults::Disk;

/// A server that is removed when this is dropped.
pub struct Server {
    /// The URL for the server's superuser.
    pub url: String,
    folder: PathBuf,
    disk: Option<Disk>,
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
        Self::on(tempfile::tempdir().unwrap(), None)
    }

    /// Starts a server on a disk that can be made to fail.
    pub fn on_failing_disk() -> Self {
        let within = tempfile::tempdir().unwrap();
        let disk = Disk::new(within.path());
        Self::on(within, Some(disk))
    }

    fn on(within: TempDir, disk: Option<Disk>) -> Self {
        let folder = within.path().join("postgres");
        let mut server = Self { url: String::new(), folder, disk, _within: within };
        let started = server.script("start", &[]).stderr(Stdio::inherit()).output().unwrap();
        assert!(
            started.status.success(),
            "PostgreSQL doesn't start; `.make/setup postgres` gets it"
        );
        String::from_utf8(started.stdout).unwrap().trim().clone_into(&mut server.url);
        server
    }

    /// Returns the disk of [`Self::on_failing_disk`].
    pub fn disk(&self) -> &Disk {
        self.disk.as_ref().unwrap()
    }

    /// Makes a base backup.
    pub fn back_up(&self) -> BaseBackup {
        let within = tempfile::tempdir().unwrap();
        let folder = within.path().join("postgres");
        self.must("copy", &[folder.to_str().unwrap()]);
        BaseBackup(Self { url: self.url.clone(), folder, disk: None, _within: within })
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
        let done = self.script(verb, more).stdout(Stdio::null()).status().unwrap();
        assert!(done.success(), "{verb} of PostgreSQL failed");
    }

    fn script(&self, verb: &str, more: &[&str]) -> Command {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut command = Command::new(root.join(".make/postgres"));
        command.arg(verb).arg(&self.folder).args(more);
        command.envs(self.disk.iter().flat_map(Disk::environment));
        command
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
        let _ = self.script("remove", &[]).status();
    }
}
