//! A PostgreSQL of a test's own, which can be restarted.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;

/// Removed when it is dropped.
pub struct Database {
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

impl Database {
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

    /// Runs statements that give nothing.
    pub fn execute(&self, statements: &'static [&'static str]) {
        self.with_connection(async |conn| {
            for &statement in statements {
                sqlx::query(statement).execute(&mut *conn).await.unwrap();
            }
        });
    }

    /// The one number that a query gives.
    pub fn number(&self, query: &'static str) -> i64 {
        self.with_connection(async |conn| {
            let number = sqlx::query_scalar(query).fetch_one(conn).await;
            number.unwrap()
        })
    }

    fn with_connection<T>(&self, work: impl AsyncFnOnce(&mut PgConnection) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut conn = PgConnection::connect(&self.url).await.unwrap();
            let done = work(&mut conn).await;
            conn.close().await.unwrap();
            done
        })
    }

    fn must(&self, verb: &str, more: &[&str]) {
        let done = script(verb, &self.folder, more)
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(done.success(), "{verb} of PostgreSQL failed");
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Nothing can be done about a failure here.
        let _ = script("remove", &self.folder, &[]).status();
    }
}

fn script(verb: &str, folder: &Path, more: &[&str]) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut command = Command::new(root.join(".make/postgres"));
    command.arg(verb).arg(folder).args(more);
    command
}
