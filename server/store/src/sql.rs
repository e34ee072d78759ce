//! The text of statements. Each statement is declared in the file of the function that runs it.

/// A kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// A file, served by one process.
    Sqlite,
    /// A server, shared by any number of processes.
    Postgres,
}

/// A statement's text for each database. A connection knows its database and runs the text for it.
///
/// The texts differ where PostgreSQL locks rows, and where many rows are written or looked up.
/// SQLite runs such a statement once per row ([`super::each`]). On the calling thread's own
/// connection, this costs half as much as passing all rows in one parameter. `?1`, `?2` and so on
/// are the values of the row, followed by the values that all rows share. PostgreSQL runs the
/// statement once, with all rows in `$1`: a JSON array with an array per row. The result is one
/// JSON value in the column `found`. COPY writes the rows of uploads, because there are many of
/// them.
///
/// On PostgreSQL, statements over messages have two more parameters ([`super::Tx::among`]):
/// the least and the greatest of the messages' IDs. They limit the statement to the partitions of
/// these days or weeks. Statements over tables that can be distributed name a shard, also on
/// PostgreSQL only. The shard is the last parameter and comes from the connection
/// ([`super::query::Connection::shard`]).
#[derive(Clone, Copy)]
pub struct Sql {
    pub sqlite: &'static str,
    pub postgres: &'static str,
    /// Whether the last parameter of PostgreSQL's text is the shard.
    pub names_shard: bool,
}

impl Sql {
    /// Completes a statement that has a text for each database, over tables that can be
    /// distributed. If PostgreSQL's text inserts the rows of a parameter, it takes the shard from a
    /// row of `applications`, because Citus then sends the whole statement to the shard's worker.
    /// Otherwise Citus would copy the rows there and commit in two phases.
    pub(crate) const IN_SHARD: Self = Self { sqlite: "", postgres: "", names_shard: true };
    /// Like [`Self::IN_SHARD`], over tables that can't be distributed.
    pub(crate) const ANYWHERE: Self = Self { names_shard: false, ..Self::IN_SHARD };

    /// A statement with one text for both databases. Braces hold a part for PostgreSQL only:
    /// `… WHERE id = $1{ FOR UPDATE}`.
    pub const fn same(text: &'static str) -> Self {
        Self { sqlite: text, postgres: text, names_shard: false }
    }

    /// Like [`Self::same`], over tables that can be distributed:
    /// `… WHERE id = $1{ AND shard = $shard}`.
    pub(crate) const fn in_shard(text: &'static str) -> Self {
        Self { names_shard: true, ..Self::same(text) }
    }

    /// A statement that only PostgreSQL runs.
    pub const fn postgres(text: &'static str) -> Self {
        Self { sqlite: "", postgres: text, names_shard: false }
    }

    /// A statement that only PostgreSQL runs, over tables that can be distributed.
    pub(crate) const fn postgres_in_shard(text: &'static str) -> Self {
        Self { names_shard: true, ..Self::postgres(text) }
    }

    /// A statement that only SQLite runs.
    pub const fn sqlite(text: &'static str) -> Self {
        Self { sqlite: text, postgres: "", names_shard: false }
    }

    /// Returns the text for this database. It is empty if the statement is only for the other one.
    pub const fn of(self, dialect: Dialect) -> &'static str {
        match dialect {
            Dialect::Sqlite => self.sqlite,
            Dialect::Postgres => self.postgres,
        }
    }
}

/// Declares a file's statements and lists them. Names of statuses stand in braces
/// ([`super::names`]). The tests prepare all listed statements, and
/// [`super::check`] runs all statements of its own file.
macro_rules! statements {
    ($($(#[$doc:meta])* const $name:ident: Sql = $sql:expr;)*) => {
        $($(#[$doc])* const $name: Sql = {
            const SQL: Sql = $sql;
            Sql {
                sqlite: $crate::names::with_names!(SQL.sqlite, false),
                postgres: $crate::names::with_names!(SQL.postgres, true),
                ..SQL
            }
        };)*
        #[cfg_attr(not(test), allow(dead_code, reason = "only the check reads its list"))]
        pub(crate) const STATEMENTS: &[(&str, Sql)] = &[$((stringify!($name), $name)),*];
    };
}
pub(crate) use statements;
