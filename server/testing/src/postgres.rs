//! A PostgreSQL server of a test's own, which can be stopped and started again.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A server that is removed when it is dropped.
pub struct Server {
    /// As its superuser.
    pub url: String,
    folder: PathBuf,
    _within: TempDir,
}

/// How PostgreSQL ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Connections are closed and transactions rolled back.
    Fast,
    /// As in a crash: what was committed comes back from the log.
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
        let started = script("start", &folder, &[])
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
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

    /// Where its files are, `data` among them.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn stop(&self, end: End) {
        self.must("stop", &[end.word()]);
    }

    /// Starts it where it was.
    pub fn start_again(&self) {
        self.must("start", &[]);
    }

    pub fn restart(&self, end: End) {
        self.must("restart", &[end.word()]);
    }

    fn must(&self, verb: &str, more: &[&str]) {
        let done = script(verb, &self.folder, more)
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(done.success(), "{verb} of PostgreSQL failed");
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
