//! The schema: checks which release created it, and migrates it.

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, SqlStr};

use super::database::Store;
use super::dialect::SchemaChange;
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

/// How many versions the schema of a database may be ahead of a program that uses it: a migration
/// only adds to what programs of the previous version use. A migration that such programs can't
/// work with skips a number.
const AHEAD_MAX: i64 = 1;

impl Store {
    /// Refuses a database without a schema, one of an older release, and one that this program
    /// can't work with.
    pub async fn must_be_usable(&self) -> std::result::Result<(), OpenError> {
        self.must_be_at_most_ahead(AHEAD_MAX).await
    }

    /// Refuses a database without a schema, and a database of another release. A program doesn't
    /// know the tables and columns that the next release added.
    pub async fn must_be_of_this_release(&self) -> std::result::Result<(), OpenError> {
        self.must_be_at_most_ahead(0).await
    }

    async fn must_be_at_most_ahead(&self, versions: i64) -> std::result::Result<(), OpenError> {
        let applied = self.applied().await?;
        let changes = self.dialect().migrations();
        let newest = refuse_foreign(changes, &applied, versions)?.ok_or(OpenError::Empty)?;
        if newest < last_of(changes) {
            return Err(OpenError::Older);
        }
        Ok(())
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

    /// Migrates the schema to this program's version. Leaves the schema of the next release as it
    /// is.
    pub async fn migrate(&self) -> std::result::Result<(), OpenError> {
        self.migrate_by(self.dialect().migrations()).await
    }

    /// Like [`Store::migrate`], for a program that has these migrations.
    pub async fn migrate_by(&self, changes: &[SchemaChange]) -> std::result::Result<(), OpenError> {
        refuse_foreign(changes, &self.applied().await?, AHEAD_MAX)?;
        // The connection is outside the pools: several processes may start at once, and all but one
        // of them wait here for the migration.
        let mut migrator = Migrator::with_migrations(migrations(changes));
        migrator.set_ignore_missing(true);
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
}

/// Refuses a database that has too new a version of the schema, or a version that was created from
/// another text than this program's. Returns its newest version. `None` if there is no schema.
fn refuse_foreign(
    changes: &[SchemaChange],
    applied: &[(i64, Vec<u8>)],
    ahead: i64,
) -> std::result::Result<Option<i64>, OpenError> {
    let newest = applied.last().map(|(version, _)| *version);
    if let Some(version) = newest.filter(|version| *version > last_of(changes) + ahead) {
        return Err(OpenError::Newer(version));
    }
    let ours = migrations(changes);
    let differs = |(version, checksum): &(i64, Vec<u8>)| {
        let ours = ours.iter().find(|ours| ours.version == *version);
        ours.is_some_and(|ours| *ours.checksum != **checksum)
    };
    if applied.iter().any(differs) {
        return Err(OpenError::EarlierBuild);
    }
    Ok(newest)
}

fn last_of(changes: &[SchemaChange]) -> i64 {
    changes.last().map_or(0, |(version, ..)| *version)
}

fn migrations(changes: &[SchemaChange]) -> Vec<Migration> {
    let migration = |&(version, name, sql): &SchemaChange| {
        let sql = SqlStr::from_static(sql);
        Migration::new(version, name.into(), MigrationType::Simple, sql, false)
    };
    changes.iter().map(migration).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::Dialect;

    /// The frozen migrations, with the checksums of their texts. A release adds those that it
    /// brings.
    const FROZEN: [(Dialect, i64, &str); 2] = [
        (
            Dialect::Sqlite,
            1,
            "81b29a897b96964274d3cf088b596343a9f293fbd1adbf282f221d332223402b\
             6c645bc37a13d2a891b1151ca5979eb0",
        ),
        (
            Dialect::Postgres,
            1,
            "a1ef2c6921750696f61bfddf2c7a2ad119f8556294586f1b315206141d810988\
             a51a9142bafe5a1bfe542f8fdad4f5e0",
        ),
    ];

    /// A database is refused if the text of one of its migrations differs.
    #[test]
    fn frozen_migrations_never_change() {
        for dialect in [Dialect::Sqlite, Dialect::Postgres] {
            let ours = migrations(dialect.migrations());
            let versions: Vec<i64> = ours.iter().map(|ours| ours.version).collect();
            assert!(versions.is_sorted(), "{dialect:?}: {versions:?}");
            for (_, version, checksum) in FROZEN.iter().filter(|(of, ..)| *of == dialect) {
                let now = ours.iter().find(|ours| ours.version == *version);
                let now = now.map(|ours| hex::encode(&ours.checksum));
                assert_eq!(now.as_deref(), Some(*checksum), "{dialect:?}, migration {version}");
            }
        }
    }
}
