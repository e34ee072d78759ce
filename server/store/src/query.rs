//! Statements with their parameters. They run on a connection of rusqlite to a SQLite file, or on a
//! connection of sqlx to PostgreSQL.
//!
//! Statements on a SQLite file run on the calling thread and stay prepared. With SQLite, sqlx would
//! send each statement and each row to another thread and back.

use std::borrow::Cow;
use std::cell::Cell;

use domain::ids::Shard;
use domain::{ApplicationId, BatchId, Money, Timestamp, Transid, VerifyId};
use rusqlite::types::{FromSql, ToSqlOutput, ValueRef};
use rusqlite::{Rows, Statement};
use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Postgres, Row as _, Transaction};

use super::file::{blocking, reading};
use super::sql::{Dialect, Sql};
use crate::error::{Error, Fault, Result};

/// A connection of the library that reaches the database.
pub enum Backend<'c> {
    /// A connection to a SQLite file. `None` once the connection is released.
    File(Option<&'c mut rusqlite::Connection>),
    /// A connection to PostgreSQL.
    Postgres(&'c mut PgConnection),
}

/// A type that can lend a connection.
pub trait Connection: Send {
    fn backend(&mut self) -> Backend<'_>;

    /// Returns the shard whose rows the connection reads and writes. `None` if its statements name
    /// no shard.
    fn shard(&self) -> Option<Shard> {
        None
    }

    /// Returns the network address of the client for whom the transaction writes. `None` for work
    /// that no client requested.
    fn client_address(&self) -> Option<&str> {
        None
    }

    /// Returns the kind of database that the connection leads to.
    fn dialect(&mut self) -> Dialect {
        match self.backend() {
            Backend::File(_) => Dialect::Sqlite,
            Backend::Postgres(_) => Dialect::Postgres,
        }
    }
}

/// A connection that runs statements.
pub type Conn<'c> = &'c mut dyn Connection;

impl Connection for PgConnection {
    fn backend(&mut self) -> Backend<'_> {
        Backend::Postgres(self)
    }
}

impl Connection for Transaction<'_, Postgres> {
    fn backend(&mut self) -> Backend<'_> {
        Backend::Postgres(self)
    }
}

impl<C: Connection + ?Sized> Connection for &mut C {
    fn backend(&mut self) -> Backend<'_> {
        (**self).backend()
    }

    fn shard(&self) -> Option<Shard> {
        (**self).shard()
    }

    fn client_address(&self) -> Option<&str> {
        (**self).client_address()
    }
}

/// A connection for the rows of one shard.
pub struct At<C> {
    pub conn: C,
    pub shard: Shard,
}

impl<C: Connection> Connection for At<C> {
    fn backend(&mut self) -> Backend<'_> {
        self.conn.backend()
    }

    fn shard(&self) -> Option<Shard> {
        Some(self.shard)
    }
}

/// The value of a parameter.
#[derive(Clone)]
pub enum Argument<'a> {
    Int(Option<i64>),
    Text(Option<Cow<'a, str>>),
    Bytes(&'a [u8]),
}

macro_rules! argument {
    ($($type:ty: $value:ident => $argument:expr;)*) => {
        $(impl<'a> From<$type> for Argument<'a> {
            fn from($value: $type) -> Self {
                $argument
            }
        })*
    };
}

argument! {
    i64: value => Self::Int(Some(value));
    Option<i64>: value => Self::Int(value);
    bool: value => Self::Int(Some(i64::from(value)));
    u16: value => Self::Int(Some(i64::from(value)));
    Option<u16>: value => Self::Int(value.map(i64::from));
    usize: value => Self::Int(Some(value.cast_signed() as i64));
    Option<usize>: value => Self::Int(value.map(|value| value.cast_signed() as i64));
    ApplicationId: id => Self::Int(Some(id.0));
    Option<ApplicationId>: id => Self::Int(id.map(|id| id.0));
    Transid: id => Self::Int(Some(id.0));
    BatchId: id => Self::Int(Some(id.0));
    VerifyId: id => Self::Int(Some(id.0));
    Option<VerifyId>: id => Self::Int(id.map(|id| id.0));
    Shard: shard => Self::Int(Some(shard.0));
    Money: amount => Self::Int(Some(amount.micros()));
    Option<Money>: amount => Self::Int(amount.map(Money::micros));
    Timestamp: time => Self::Int(Some(time.unix_ms()));
    Option<Timestamp>: time => Self::Int(time.map(Timestamp::unix_ms));
    &'a str: text => Self::Text(Some(Cow::Borrowed(text)));
    Option<&'a str>: text => Self::Text(text.map(Cow::Borrowed));
    &'a String: text => Self::Text(Some(Cow::Borrowed(text)));
    &'a Option<String>: text => Self::Text(text.as_deref().map(Cow::Borrowed));
    Option<String>: text => Self::Text(text.map(Cow::Owned));
    String: text => Self::Text(Some(Cow::Owned(text)));
    &'a [u8]: bytes => Self::Bytes(bytes);
}

impl rusqlite::ToSql for Argument<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self {
            Self::Int(Some(value)) => ValueRef::Integer(*value),
            Self::Text(Some(text)) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
            Self::Int(None) | Self::Text(None) => ValueRef::Null,
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

/// The values of parameters: none, one, or a tuple.
pub trait Values<'a> {
    type Array: AsRef<[Argument<'a>]> + IntoIterator<Item = Argument<'a>>;

    fn into_array(self) -> Self::Array;
}

impl<'a, T: Into<Argument<'a>>> Values<'a> for T {
    type Array = [Argument<'a>; 1];

    fn into_array(self) -> Self::Array {
        [self.into()]
    }
}

impl<'a> Values<'a> for () {
    type Array = [Argument<'a>; 0];

    fn into_array(self) -> Self::Array {
        []
    }
}

macro_rules! tuples {
    ($($count:literal: $($value:ident)*;)*) => {
        $(impl<'a, $($value: Into<Argument<'a>>),*> Values<'a> for ($($value,)*) {
            type Array = [Argument<'a>; $count];

            #[expect(non_snake_case, reason = "each value is called like its type")]
            fn into_array(self) -> Self::Array {
                let ($($value,)*) = self;
                [$($value.into()),*]
            }
        })*
    };
}

tuples! {
    2: A B;
    3: A B C;
    4: A B C D;
    5: A B C D E;
    6: A B C D E F;
    7: A B C D E F G;
    8: A B C D E F G H;
    9: A B C D E F G H I;
    10: A B C D E F G H I J;
    11: A B C D E F G H I J K;
    12: A B C D E F G H I J K L;
    13: A B C D E F G H I J K L M;
    14: A B C D E F G H I J K L M N;
    15: A B C D E F G H I J K L M N O;
    16: A B C D E F G H I J K L M N O P;
    17: A B C D E F G H I J K L M N O P Q;
}

enum Text {
    Known(Sql),
    /// A text that the program built for one database. The flag says whether the text has a
    /// parameter for the shard on PostgreSQL.
    Built(String, bool),
}

/// A statement and its parameters.
pub struct Query<'a> {
    text: Text,
    pub(crate) arguments: Vec<Argument<'a>>,
}

/// Makes a query from a statement and the values of its parameters.
pub fn query<'a>(sql: Sql, values: impl Values<'a>) -> Query<'a> {
    Query { text: Text::Known(sql), arguments: values.into_array().into_iter().collect() }
}

/// Makes a query from a text that the program built. The text must not contain outside input.
pub(crate) fn query_of<'a>(sql: String, values: impl Values<'a>) -> Query<'a> {
    Query { text: Text::Built(sql, false), arguments: values.into_array().into_iter().collect() }
}

/// Like [`query_of`], for a text that names a shard on PostgreSQL.
pub(crate) fn query_in_shard<'a>(sql: String, values: impl Values<'a>) -> Query<'a> {
    Query { text: Text::Built(sql, true), arguments: values.into_array().into_iter().collect() }
}

impl<'a> Query<'a> {
    /// Adds the values of further parameters.
    pub fn bind(mut self, values: impl IntoIterator<Item = Argument<'a>>) -> Self {
        self.arguments.extend(values);
        self
    }

    pub(crate) fn text(&self, dialect: Dialect) -> &str {
        match &self.text {
            Text::Known(sql) => sql.of(dialect),
            Text::Built(text, _) => text,
        }
    }

    /// Runs a statement that returns no rows. Returns the number of affected rows.
    pub(crate) async fn execute(self, conn: Conn<'_>) -> Result<u64> {
        let shard = conn.shard();
        match conn.backend() {
            Backend::File(conn) => blocking(|| {
                let mut statement = given(conn)?.prepare_cached(self.text(Dialect::Sqlite))?;
                bind_by_number(&mut statement, &self.arguments)?;
                Ok(statement.raw_execute()? as u64)
            }),
            Backend::Postgres(conn) => {
                let query = self.on_server(shard)?;
                Ok(Box::pin(query.execute(conn)).await?.rows_affected())
            }
        }
    }

    pub(crate) async fn fetch_all<T>(
        self,
        conn: Conn<'_>,
        read: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let shard = conn.shard();
        match conn.backend() {
            Backend::File(conn) => {
                let mut statement = given(conn)?.prepare_cached(self.text(Dialect::Sqlite))?;
                bind_by_number(&mut statement, &self.arguments)?;
                let reads = statement.readonly();
                let run = || {
                    let mut found = Vec::new();
                    let read = |row: &rusqlite::Row<'_>| read(&Row::of_file(row));
                    read_rows(&mut statement.raw_query(), &mut found, read)?;
                    Ok(found)
                };
                if reads { reading(run) } else { blocking(run) }
            }
            Backend::Postgres(conn) => {
                let query = self.on_server(shard)?;
                let rows = Box::pin(query.fetch_all(conn)).await?;
                rows.into_iter().map(|row| read(&Row::Postgres(row))).collect()
            }
        }
    }

    /// Reads the first row, if there is one.
    pub(crate) async fn fetch_optional<T>(
        self,
        conn: Conn<'_>,
        read: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let shard = conn.shard();
        match conn.backend() {
            Backend::File(_) => Ok(self.fetch_all(conn, read).await?.into_iter().next()),
            Backend::Postgres(conn) => {
                let query = self.on_server(shard)?;
                let row = Box::pin(query.fetch_optional(conn)).await?;
                row.map(|row| read(&Row::Postgres(row))).transpose()
            }
        }
    }

    /// Reads the first row of a statement that always returns a row.
    pub(crate) async fn fetch_one<T>(
        self,
        conn: Conn<'_>,
        read: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        let statement = match &self.text {
            Text::Known(sql) => Cow::Borrowed(sql.of(conn.dialect())),
            Text::Built(text, _) => Cow::Owned(text.clone()),
        };
        let row = self.fetch_optional(conn, read).await?;
        row.ok_or(Error::Failed(Fault::NoRow(statement)))
    }

    /// Returns whether the statement returns a row.
    pub async fn finds(self, conn: Conn<'_>) -> Result<bool> {
        Ok(self.fetch_optional(conn, |_| Ok(())).await?.is_some())
    }

    /// Makes the query for a server. Adds the shard if the text names one.
    fn on_server(
        mut self,
        shard: Option<Shard>,
    ) -> Result<sqlx::query::Query<'static, Postgres, PgArguments>> {
        let (Text::Known(Sql { names_shard, .. }) | Text::Built(_, names_shard)) = self.text;
        if names_shard {
            let text = self.text(Dialect::Postgres);
            let shard = shard.ok_or_else(|| Fault::NoShard(text.to_owned()))?;
            self.arguments.push(shard.into());
        }
        let query = match self.text {
            Text::Known(sql) => sqlx::query(sql.postgres),
            Text::Built(text, _) => sqlx::query(AssertSqlSafe(text)),
        };
        Ok(self.arguments.into_iter().fold(query, |query, argument| match argument {
            Argument::Int(value) => query.bind(value),
            Argument::Text(text) => query.bind(text.map(Cow::into_owned)),
            Argument::Bytes(bytes) => query.bind(bytes.to_vec()),
        }))
    }
}

/// Returns the connection to a SQLite file.
///
/// # Errors
/// `Failed` if the connection is released.
pub fn given(conn: Option<&mut rusqlite::Connection>) -> Result<&mut rusqlite::Connection> {
    conn.ok_or(Error::Failed(Fault::Stopped))
}

/// Reads all rows that a statement returns from a SQLite file.
pub(crate) fn read_rows<T>(
    rows: &mut Rows<'_>,
    found: &mut Vec<T>,
    read: impl Fn(&rusqlite::Row<'_>) -> Result<T>,
) -> Result<()> {
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(())
}

/// Binds `$1` to the first argument, and so on. SQLite itself treats `$1` as a name, and numbers
/// parameters in the order in which their names appear.
fn bind_by_number(statement: &mut Statement<'_>, arguments: &[Argument<'_>]) -> Result<()> {
    for index in 1..=statement.parameter_count() {
        let name = statement.parameter_name(index);
        let number = name.and_then(|name| name.get(1..)?.parse::<usize>().ok());
        if let Some(argument) = number.and_then(|number| arguments.get(number.checked_sub(1)?)) {
            statement.raw_bind_parameter(index, argument)?;
        }
    }
    Ok(())
}

/// Runs several statements without parameters.
pub async fn run(conn: Conn<'_>, script: &'static str) -> Result<()> {
    run_of(conn, script.to_owned()).await
}

/// Runs several statements that the program built. The text must not contain outside input.
pub(crate) async fn run_of(conn: Conn<'_>, script: String) -> Result<()> {
    match conn.backend() {
        Backend::File(conn) => blocking(|| Ok(given(conn)?.execute_batch(&script)?)),
        Backend::Postgres(conn) => {
            Box::pin(sqlx::raw_sql(AssertSqlSafe(script)).execute(conn)).await?;
            Ok(())
        }
    }
}

/// A row that is being read.
pub enum Row<'r> {
    File {
        row: &'r rusqlite::Row<'r>,
        /// The index after the last column that was read. Columns are usually read in order.
        next: Cell<usize>,
    },
    Postgres(PgRow),
}

impl<'r> Row<'r> {
    pub(crate) const fn of_file(row: &'r rusqlite::Row<'r>) -> Self {
        let next = Cell::new(0);
        Self::File { row, next }
    }

    /// Returns the value of a column.
    ///
    /// # Errors
    /// `Failed` if the column doesn't exist or holds a value of another type.
    pub fn get<T: Column>(&self, column: &'static str) -> Result<T> {
        T::read(self, column)
    }
}

/// Returns the value of a column of a row in a SQLite file.
fn get_of_file<T: FromSql>(
    row: &rusqlite::Row<'_>,
    next: &Cell<usize>,
    column: &'static str,
) -> Result<T> {
    let columns = row.as_ref();
    let is_it = |place: &usize| columns.column_name(*place).is_ok_and(|name| name == column);
    let mut places = (next.get()..columns.column_count()).chain(0..next.get());
    let Some(place) = places.find(is_it) else {
        return Err(rusqlite::Error::InvalidColumnName(column.to_owned()).into());
    };
    next.set(place + 1);
    Ok(row.get(place)?)
}

/// A type that a column can be read as.
pub trait Column: Sized {
    fn read(row: &Row<'_>, column: &'static str) -> Result<Self>;
}

macro_rules! stored {
    ($($type:ty),*) => {
        $(impl Column for $type {
            fn read(row: &Row<'_>, column: &'static str) -> Result<Self> {
                match row {
                    Row::File { row, next } => get_of_file(row, next, column),
                    Row::Postgres(row) => Ok(row.try_get(column)?),
                }
            }
        })*
    };
}

stored!(i64, Option<i64>, String, Option<String>, Vec<u8>);

macro_rules! made_of_int {
    ($($type:ty: $make:expr;)*) => {
        $(impl Column for $type {
            fn read(row: &Row<'_>, column: &'static str) -> Result<Self> {
                i64::read(row, column).map($make)
            }
        }

        impl Column for Option<$type> {
            fn read(row: &Row<'_>, column: &'static str) -> Result<Self> {
                Ok(Option::<i64>::read(row, column)?.map($make))
            }
        })*
    };
}

made_of_int! {
    bool: |value| value == 1;
    ApplicationId: ApplicationId;
    Transid: Transid;
    BatchId: BatchId;
    Money: Money::from_micros;
    Timestamp: Timestamp::from_unix_ms;
}
