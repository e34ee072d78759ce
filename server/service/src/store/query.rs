//! A statement with its parameters, on whichever connection runs it: the process's own connection
//! to a SQLite file, or one of sqlx's.
//!
//! The file is written through one connection of `rusqlite`: its statements run on the calling
//! thread and stay prepared, where sqlx hands each statement and each row to a thread of its own
//! and back.

use std::sync::Arc;

use domain::ApplicationId;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Rows, Statement};
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyConnection, AssertSqlSafe, Row as _, Transaction};

use super::file::blocking;
use super::sql::{Dialect, Sql};
use crate::error::{Error, Fault, Result};

/// A connection that runs statements.
pub(crate) enum Conn<'c> {
    /// The connection that writes to a SQLite file; `None` once it is given back.
    File(Option<&'c mut rusqlite::Connection>),
    /// Any other: PostgreSQL's, and those that only read a SQLite file.
    Sqlx(&'c mut AnyConnection),
}

/// Which database a connection of sqlx's leads to.
fn dialect_of(conn: &AnyConnection) -> Dialect {
    match conn.backend_name() {
        "PostgreSQL" => Dialect::Postgres,
        _ => Dialect::Sqlite,
    }
}

/// What has a connection to lend.
pub(crate) trait Connection: Send {
    fn conn(&mut self) -> Conn<'_>;

    /// Which database it leads to.
    fn dialect(&mut self) -> Dialect {
        match self.conn() {
            Conn::File(_) => Dialect::Sqlite,
            Conn::Sqlx(conn) => dialect_of(conn),
        }
    }
}

impl Connection for AnyConnection {
    fn conn(&mut self) -> Conn<'_> {
        Conn::Sqlx(self)
    }
}

impl Connection for PoolConnection<Any> {
    fn conn(&mut self) -> Conn<'_> {
        Conn::Sqlx(self)
    }
}

impl Connection for Transaction<'_, Any> {
    fn conn(&mut self) -> Conn<'_> {
        Conn::Sqlx(self)
    }
}

/// A parameter.
pub(crate) enum Argument {
    Int(Option<i64>),
    Text(Option<String>),
    Bytes(Vec<u8>),
}

macro_rules! argument {
    ($($type:ty: $value:ident => $argument:expr;)*) => {
        $(impl From<$type> for Argument {
            fn from($value: $type) -> Self {
                $argument
            }
        })*
    };
}

argument! {
    i64: value => Self::Int(Some(value));
    Option<i64>: value => Self::Int(value);
    String: value => Self::Text(Some(value));
    &String: value => Self::Text(Some(value.clone()));
    &str: value => Self::Text(Some(value.to_owned()));
    Option<String>: value => Self::Text(value);
    Option<&str>: value => Self::Text(value.map(str::to_owned));
    Vec<u8>: value => Self::Bytes(value);
    ApplicationId: id => Self::Int(Some(id.0));
    Option<ApplicationId>: id => Self::Int(id.map(|id| id.0));
}

impl rusqlite::ToSql for Argument {
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

enum Text {
    Known(Sql),
    /// Put together by the program for one database.
    Built(String),
}

impl Text {
    fn of(&self, dialect: Dialect) -> &str {
        match self {
            Self::Known(sql) => sql.of(dialect),
            Self::Built(text) => text,
        }
    }
}

/// A statement and its parameters.
pub(crate) struct Query {
    text: Text,
    arguments: Vec<Argument>,
}

/// What a statement that writes did.
pub(crate) struct Done(u64);

impl Done {
    pub(crate) const fn rows_affected(&self) -> u64 {
        self.0
    }
}

/// Begins a statement.
pub(crate) fn query(sql: Sql) -> Query {
    Query {
        text: Text::Known(sql),
        arguments: Vec::new(),
    }
}

/// Begins a statement that the program put together. It holds nothing that came from outside.
pub(crate) fn query_of(sql: String) -> Query {
    Query {
        text: Text::Built(sql),
        arguments: Vec::new(),
    }
}

impl Query {
    pub(crate) fn bind(mut self, argument: impl Into<Argument>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Runs a statement that returns no rows.
    pub(crate) async fn execute(self, conn: &mut dyn Connection) -> Result<Done> {
        match conn.conn() {
            Conn::File(conn) => blocking(|| {
                let mut statement = given(conn)?.prepare_cached(self.text.of(Dialect::Sqlite))?;
                bind_by_number(&mut statement, &self.arguments)?;
                Ok(Done(statement.raw_execute()? as u64))
            }),
            Conn::Sqlx(conn) => {
                let query = self.sqlx(dialect_of(conn));
                Ok(Done(query.execute(conn).await?.rows_affected()))
            }
        }
    }

    /// Reads all rows.
    pub(crate) async fn fetch_all(self, conn: &mut dyn Connection) -> Result<Vec<Row>> {
        match conn.conn() {
            Conn::File(conn) => blocking(|| self.file_rows(given(conn)?)),
            Conn::Sqlx(conn) => {
                let rows = self.sqlx(dialect_of(conn)).fetch_all(conn).await?;
                Ok(rows.into_iter().map(Row::Sqlx).collect())
            }
        }
    }

    /// Reads the first row, if there is one.
    pub(crate) async fn fetch_optional(self, conn: &mut dyn Connection) -> Result<Option<Row>> {
        match conn.conn() {
            Conn::File(conn) => Ok(blocking(|| self.file_rows(given(conn)?))?
                .into_iter()
                .next()),
            Conn::Sqlx(conn) => {
                let query = self.sqlx(dialect_of(conn));
                Ok(query.fetch_optional(conn).await?.map(Row::Sqlx))
            }
        }
    }

    /// Reads the first row of a statement that always has one.
    pub(crate) async fn fetch_one(self, conn: &mut dyn Connection) -> Result<Row> {
        let row = self.fetch_optional(conn).await?;
        row.ok_or(Error::Failed(Fault::Missing("a query")))
    }

    fn sqlx(self, dialect: Dialect) -> sqlx::query::Query<'static, Any, AnyArguments> {
        let query = match self.text {
            Text::Known(sql) => sqlx::query(sql.of(dialect)),
            Text::Built(text) => sqlx::query(AssertSqlSafe(text)),
        };
        self.arguments
            .into_iter()
            .fold(query, |query, argument| match argument {
                Argument::Int(value) => query.bind(value),
                Argument::Text(text) => query.bind(text),
                Argument::Bytes(bytes) => query.bind(bytes),
            })
    }

    fn file_rows(self, conn: &mut rusqlite::Connection) -> Result<Vec<Row>> {
        let mut statement = conn.prepare_cached(self.text.of(Dialect::Sqlite))?;
        let names: Arc<[String]> = statement
            .column_names()
            .iter()
            .map(|n| (*n).to_owned())
            .collect();
        let mut found = Vec::new();
        bind_by_number(&mut statement, &self.arguments)?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            let values = (0..names.len()).map(|column| row.get(column));
            found.push(Row::File {
                names: Arc::clone(&names),
                values: values.collect::<rusqlite::Result<_>>()?,
            });
        }
        Ok(found)
    }
}

/// The connection of a file, unless its transaction is over.
pub(crate) fn given(conn: Option<&mut rusqlite::Connection>) -> Result<&mut rusqlite::Connection> {
    conn.ok_or(Error::Failed(Fault::Stopped))
}

/// Runs a statement once per row on a file's connection; how many rows of the table it touched.
pub(crate) fn each<T>(
    conn: &rusqlite::Connection,
    sql: Sql,
    rows: impl IntoIterator<Item = T>,
    run: impl Fn(&mut Statement<'_>, T) -> rusqlite::Result<usize>,
) -> Result<u64> {
    blocking(|| {
        let mut statement = conn.prepare_cached(sql.sqlite)?;
        let mut touched = 0;
        for row in rows {
            touched += run(&mut statement, row)?;
        }
        Ok(touched as u64)
    })
}

/// Runs a query once per key on a file's connection, and reads all rows that it finds.
pub(crate) fn look_up<K, T>(
    conn: &rusqlite::Connection,
    sql: Sql,
    keys: impl IntoIterator<Item = K>,
    run: impl for<'s> Fn(&'s mut Statement<'_>, &K) -> rusqlite::Result<Rows<'s>>,
    read: impl Fn(&K, &rusqlite::Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    blocking(|| {
        let mut statement = conn.prepare_cached(sql.sqlite)?;
        let mut found = Vec::new();
        for key in keys {
            let mut rows = run(&mut statement, &key)?;
            while let Some(row) = rows.next()? {
                found.push(read(&key, row)?);
            }
        }
        Ok(found)
    })
}

/// Binds `$1` to the first argument and so on: SQLite itself takes `$1` for a name, and numbers
/// parameters in the order in which they appear.
fn bind_by_number(statement: &mut Statement<'_>, arguments: &[Argument]) -> rusqlite::Result<()> {
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
pub(crate) async fn run(conn: &mut dyn Connection, script: &'static str) -> Result<()> {
    run_of(conn, script.to_owned()).await
}

/// Runs several statements that the program put together, without anything that came from outside.
pub(crate) async fn run_of(conn: &mut dyn Connection, script: String) -> Result<()> {
    match conn.conn() {
        Conn::File(conn) => blocking(|| Ok(given(conn)?.execute_batch(&script)?)),
        Conn::Sqlx(conn) => {
            sqlx::raw_sql(AssertSqlSafe(script)).execute(conn).await?;
            Ok(())
        }
    }
}

/// A row that was read.
pub(crate) enum Row {
    File {
        names: Arc<[String]>,
        values: Vec<Value>,
    },
    Sqlx(AnyRow),
}

impl Row {
    /// The value of a column, by its name.
    ///
    /// # Errors
    /// When there is no such column, or it holds something else.
    pub(crate) fn get<T: Column>(&self, column: &'static str) -> Result<T> {
        match self {
            Self::Sqlx(row) => Ok(row.try_get(column)?),
            Self::File { names, values } => {
                let place = names.iter().position(|name| name == column);
                let value = place.and_then(|place| values.get(place));
                value.and_then(T::of_file).ok_or_else(|| {
                    let missing = sqlx::Error::ColumnNotFound(column.to_owned());
                    Error::Failed(Fault::Database(missing))
                })
            }
        }
    }
}

/// A type that a column can be read as.
pub(crate) trait Column: for<'r> sqlx::Decode<'r, Any> + sqlx::Type<Any> + Sized {
    /// `None` when the value is of another kind.
    fn of_file(value: &Value) -> Option<Self>;
}

impl Column for i64 {
    fn of_file(value: &Value) -> Option<Self> {
        match value {
            Value::Integer(value) => Some(*value),
            _ => None,
        }
    }
}

impl Column for String {
    fn of_file(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }
}

impl Column for Vec<u8> {
    fn of_file(value: &Value) -> Option<Self> {
        match value {
            Value::Blob(bytes) => Some(bytes.clone()),
            _ => None,
        }
    }
}

macro_rules! optional {
    ($($type:ty),*) => {
        $(impl Column for Option<$type> {
            fn of_file(value: &Value) -> Option<Self> {
                match value {
                    Value::Null => Some(None),
                    value => <$type as Column>::of_file(value).map(Some),
                }
            }
        })*
    };
}

optional!(i64, String);
