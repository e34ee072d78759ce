//! The schema: checks which release created it, and migrates it.

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, SqlStr};

use super::database::Store;
use super::query::{Row, query};
use super::sql::{Sql, statements};
use super::sqlite;
use crate::error::{OpenError, Result};

statements! {
    const APPLIED: Sql =
        Sql::same("SELECT version, checksum FROM _sqlx_migrations ORDER BY version");
    const PROGRAM: Sql = Sql {
        sqlite: "SELECT sqlite_version() AS version",
        postgres: "SELECT current_setting('server_version') AS version",
        ..Sql::ANYWHERE
    };
}

/// The oldest PostgreSQL that the statements are written for.
const POSTGRES_MIN: u32 = 15;

impl Store {
    /// Refuses a database without a schema, and a database of another release.
    pub async fn must_be_of_this_release(&self) -> std::result::Result<(), OpenError> {
        let applied = self.applied().await?;
        self.refuse_earlier_build(&applied)?;
        let newest = applied.last().map(|(version, _)| *version);
        let ours = self.migrations().last().map(|ours| ours.version);
        match (newest, ours) {
            (None, _) => Err(OpenError::Empty),
            (Some(version), Some(ours)) if version > ours => Err(OpenError::Newer(version)),
            (version, ours) if version < ours => Err(OpenError::Older),
            _ => Ok(()),
        }
    }

    /// Returns the name and the version of the database program, such as `PostgreSQL 15.20`.
    ///
    /// # Errors
    /// `OldServer` if PostgreSQL is too old.
    pub async fn program(&self) -> std::result::Result<String, OpenError> {
        let mut conn = self.read().await?;
        let version: String =
            query(PROGRAM, ()).fetch_one(&mut conn, |row| row.get("version")).await?;
        if self.file().is_some() {
            return Ok(format!("SQLite {version}"));
        }
        let major = version.split(|c: char| !c.is_ascii_digit()).next();
        if major.and_then(|major| major.parse().ok()).is_some_and(|major: u32| major < POSTGRES_MIN)
        {
            return Err(OpenError::OldServer { version, least: POSTGRES_MIN });
        }
        Ok(format!("PostgreSQL {version}"))
    }

    /// Refuses a database whose schema was created from a different text than this program's.
    /// Before the first release the text is changed in place, so no migration leads from one schema
    /// to the other.
    fn refuse_earlier_build(
        &self,
        applied: &[(i64, Vec<u8>)],
    ) -> std::result::Result<(), OpenError> {
        let differs = |(version, checksum): &(i64, Vec<u8>)| {
            let ours = self.migrations();
            let ours = ours.iter().find(|ours| ours.version == *version);
            ours.is_some_and(|ours| *ours.checksum != **checksum)
        };
        if applied.iter().any(differs) {
            return Err(OpenError::EarlierBuild);
        }
        Ok(())
    }

    /// Returns the applied versions of the schema in order, with their checksums. Returns an empty
    /// list if there is no schema.
    async fn applied(&self) -> Result<Vec<(i64, Vec<u8>)>> {
        let mut conn = self.read().await?;
        let read = |row: &Row<'_>| Ok((row.get("version")?, row.get("checksum")?));
        match query(APPLIED, ()).fetch_all(&mut conn, read).await {
            Err(error) if self.dialect().is_missing_table(&error) => Ok(Vec::new()),
            applied => applied,
        }
    }

    /// Migrates the schema to this program's version. Refuses a newer schema.
    pub async fn migrate(&self) -> std::result::Result<(), OpenError> {
        self.refuse_earlier_build(&self.applied().await?)?;
        // The connection is outside the pools: several processes may start at once, and all but one
        // of them wait here for the migration.
        let migrator = Migrator::with_migrations(self.migrations());
        if let Some(file) = self.dialect().file(self.url()) {
            // Not by the URL: sqlx would decode its percent signs.
            let options = SqliteConnectOptions::new().filename(file);
            let mut conn = options.connect().await?;
            conn.execute(sqlite::WRITER).await?;
            migrator.run(&mut conn).await?;
            conn.close().await?;
        } else {
            // There are no time limits: a migration waits while another process migrates, and a
            // large table takes a long time.
            let mut conn = self.connect().await?;
            migrator.run(&mut conn).await?;
            conn.close().await?;
        }
        Ok(())
    }

    fn migrations(&self) -> Vec<Migration> {
        let migration = |&(version, name, sql): &(i64, &'static str, &'static str)| {
            let sql = SqlStr::from_static(sql);
            Migration::new(version, name.into(), MigrationType::Simple, sql, false)
        };
        self.dialect().migrations().iter().map(migration).collect()
    }
}
