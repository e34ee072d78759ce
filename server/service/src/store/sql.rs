//! The text of statements. Each statement stands in the file of the function that binds it.

/// A kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// A file, for one process that serves it.
    Sqlite,
    /// A server, for any number of processes.
    Postgres,
}

/// A statement's text for each database. The connection knows its database, and runs the text for
/// it.
///
/// The texts differ where PostgreSQL locks rows, and where many rows are written or looked up.
/// SQLite runs such a statement once for each row ([`super::each`]): on a connection of the calling
/// thread that costs half of what one parameter with all rows does. `?1`, `?2` and so on are the
/// values of the row, and the values that all rows share follow. PostgreSQL runs the statement
/// once, and `$1` has all rows: a JSON array with an array per row. The rows found come back as one
/// JSON value in the column `found`.
///
/// Statements over messages, the queue, segments and batches have two more kinds of parameters, for
/// PostgreSQL alone ([`super::WriteTx::among`]): the least and the greatest of the messages' ids,
/// since messages are in a table for each day; and the transaction's applications
/// ([`super::WriteTx::named`]), so that a PostgreSQL that is spread over machines can go to the
/// right one.
#[derive(Clone, Copy)]
pub(crate) struct Sql {
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
}

impl Sql {
    /// A statement with one text for both databases.
    pub(crate) const fn same(text: &'static str) -> Self {
        Self {
            sqlite: text,
            postgres: text,
        }
    }

    /// A statement that only PostgreSQL is given.
    pub(crate) const fn postgres(text: &'static str) -> Self {
        Self {
            sqlite: "",
            postgres: text,
        }
    }

    /// A statement that only SQLite is given.
    pub(crate) const fn sqlite(text: &'static str) -> Self {
        Self {
            sqlite: text,
            postgres: "",
        }
    }

    /// The text for this database; empty where the statement is only for the other one.
    pub(crate) const fn of(self, dialect: Dialect) -> &'static str {
        match dialect {
            Dialect::Sqlite => self.sqlite,
            Dialect::Postgres => self.postgres,
        }
    }
}

/// Declares a file's statements, and lists them: for the tests, which prepare each statement, and
/// for the check, which runs all statements of its file.
macro_rules! statements {
    ($($(#[$doc:meta])* const $name:ident: Sql = $sql:expr;)*) => {
        $($(#[$doc])* const $name: Sql = $sql;)*
        #[cfg_attr(not(test), allow(dead_code, reason = "the check's alone is read"))]
        pub(crate) const STATEMENTS: &[(&str, Sql)] = &[$((stringify!($name), $name)),*];
    };
}
pub(crate) use statements;
