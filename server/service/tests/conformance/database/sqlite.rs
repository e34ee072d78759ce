//! A SQLite database in the folder of its test.

use std::path::{Path, PathBuf};

use service::Service;

pub struct Database(PathBuf);

impl Database {
    pub fn make(folder: &Path) -> Self {
        Self(folder.join("data"))
    }

    pub fn url(&self) -> String {
        format!("sqlite:{}/heliograph.db", self.0.display())
    }

    /// Returns the files of uploads that wait for their expansion.
    pub fn spools(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.0.join("spool")) else {
            return Vec::new();
        };
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    pub fn lose_spool(&self) {
        std::fs::remove_file(&self.spools()[0]).unwrap();
    }

    pub fn damage_spool(&self) {
        let file = &self.spools()[0];
        let mut bytes = std::fs::read(file).unwrap();
        let last = bytes.len() - 3;
        bytes[last] ^= 1;
        std::fs::write(file, bytes).unwrap();
    }

    pub async fn contents(&self, service: &Service) -> Vec<u8> {
        let copy = self.0.with_file_name("contents.db");
        service.operations().backup(&copy).await.unwrap();
        let contents = std::fs::read(&copy).unwrap();
        std::fs::remove_file(copy).unwrap();
        contents
    }
}
