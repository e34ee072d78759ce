//! A SQLite database of a test's own.

use std::path::{Path, PathBuf};

use service::Service;
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _};

/// Keeps everybody else from writing until `ROLLBACK`.
pub const HOLD: &str = "BEGIN IMMEDIATE";

pub struct Database(PathBuf);

impl Database {
    #[expect(clippy::unused_async, reason = "a server takes its time to make one")]
    pub async fn make(folder: &Path) -> Self {
        Self(folder.join("data"))
    }

    pub fn url(&self) -> String {
        format!("sqlite:{}/heliograph.db", self.0.display())
    }

    /// A connection that may do what no verb does.
    pub async fn connect(&self) -> AnyConnection {
        AnyConnection::connect(&self.url()).await.unwrap()
    }

    /// A statement after which messages to a number can't be stored.
    pub fn refuse_number(number: &str) -> AssertSqlSafe<String> {
        AssertSqlSafe(format!(
            "CREATE TRIGGER refused BEFORE INSERT ON messages WHEN NEW.number = '{number}' \
             BEGIN SELECT RAISE(ABORT, 'refused by the test'); END"
        ))
    }

    /// The files that wait to become messages.
    pub fn spools(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.0.join("spool")) else {
            return Vec::new();
        };
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// So many uploads wait to become messages.
    #[expect(clippy::unused_async, reason = "a server takes its time")]
    pub async fn assert_spools(&self, count: usize) {
        assert_eq!(self.spools().len(), count);
    }

    /// Loses the rows of the only upload that waits.
    #[expect(clippy::unused_async, reason = "a server takes its time")]
    pub async fn lose_spool(&self) {
        std::fs::remove_file(&self.spools()[0]).unwrap();
    }

    /// Damages the last rows of the only upload that waits.
    #[expect(clippy::unused_async, reason = "a server takes its time")]
    pub async fn damage_spool(&self) {
        let file = &self.spools()[0];
        let mut bytes = std::fs::read(file).unwrap();
        let last = bytes.len() - 3;
        bytes[last] ^= 1;
        std::fs::write(file, bytes).unwrap();
    }

    /// All that is stored.
    pub async fn contents(&self, service: &Service) -> Vec<u8> {
        let copy = self.0.with_file_name("contents.db");
        service.backup(&copy).await.unwrap();
        std::fs::read(copy).unwrap()
    }
}
