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
/// JSON value in the column `found`. Rows of an upload, which are many, are written by COPY.
///
/// Statements over messages have two more parameters, for PostgreSQL alone
/// ([`super::WriteTx::among`]): the least and the greatest of the messages' ids, since messages are
/// in a table for each day or week. A statement over tables that can be distributed names a shard
/// in PostgreSQL's text, by its last parameter, which is the shard of the connection
/// ([`super::query::Connection::shard`]).
#[derive(Clone, Copy)]
pub(crate) struct Sql {
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
    /// Whether the last parameter of PostgreSQL's text is the shard.
    pub(crate) names_shard: bool,
}

impl Sql {
    /// What a statement with a text for each database adds, over tables that can be distributed.
    /// Where PostgreSQL's text inserts rows of a parameter, it takes the shard from a row of
    /// `applications`, where it always stands: Citus then gives the whole statement to the shard's
    /// worker, and would otherwise copy the rows there and commit in two phases.
    pub(crate) const IN_SHARD: Self = Self {
        sqlite: "",
        postgres: "",
        names_shard: true,
    };
    /// Likewise, over other tables.
    pub(crate) const ANYWHERE: Self = Self {
        names_shard: false,
        ..Self::IN_SHARD
    };

    /// A statement with one text for both databases.
    pub(crate) const fn same(text: &'static str) -> Self {
        Self {
            sqlite: text,
            postgres: text,
            names_shard: false,
        }
    }

    /// A statement that only PostgreSQL is given.
    pub(crate) const fn postgres(text: &'static str) -> Self {
        Self {
            sqlite: "",
            postgres: text,
            names_shard: false,
        }
    }

    /// A statement that only PostgreSQL is given, over tables that can be distributed.
    pub(crate) const fn postgres_in_shard(text: &'static str) -> Self {
        Self {
            names_shard: true,
            ..Self::postgres(text)
        }
    }

    /// A statement that only SQLite is given.
    pub(crate) const fn sqlite(text: &'static str) -> Self {
        Self {
            sqlite: text,
            postgres: "",
            names_shard: false,
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

/// A statement over tables that can be distributed: the texts that both databases share, each with
/// what only PostgreSQL's text has after it: `in_shard!("… WHERE id = $1" => " AND shard = $2")`.
macro_rules! in_shard {
    ($($text:expr $(=> $shard:expr)?),+ $(,)?) => {
        $crate::store::sql::Sql {
            sqlite: concat!($($text),+),
            postgres: concat!($($text $(, $shard)?),+),
            ..$crate::store::sql::Sql::IN_SHARD
        }
    };
}
pub(crate) use in_shard;

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
