//! Statements over many rows. On a SQLite file, a statement runs once per row. A server gets all
//! rows in one parameter, or by COPY.

use std::cell::RefCell;

use rusqlite::CachedStatement;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::ser::Serializer;

use super::file::blocking;
use super::query::{Argument, Backend, Conn, Query, Row, Values, given, read_rows};
use super::sql::Dialect;
use super::{binary, file_row, row};
use crate::error::{Fault, Result};

impl<'a> Query<'a> {
    /// Runs a statement for each row. Returns the number of changed rows.
    pub(crate) async fn execute_each<V: Values<'a>>(
        self,
        conn: Conn<'_>,
        rows: impl IntoIterator<Item = V>,
    ) -> Result<u64> {
        if let Backend::File(conn) = conn.backend() {
            return blocking(|| {
                let mut statement = given(conn)?.prepare_cached(self.text(Dialect::Sqlite))?;
                let mut touched = 0;
                for row in rows {
                    self.bind_row(&mut statement, row.into_array().as_ref())?;
                    touched += statement.raw_execute()?;
                }
                Ok(touched as u64)
            });
        }
        match self.with_all(rows)? {
            Some(query) => query.execute(conn).await,
            None => Ok(0),
        }
    }

    /// Inserts rows and returns their number. A server gets the rows by COPY in binary format,
    /// which is cheaper for the server than an INSERT from JSON. The columns are those of a row,
    /// then the values that all rows share, then the shard.
    pub(crate) async fn insert_each<V: Values<'a>>(
        self,
        conn: Conn<'_>,
        rows: impl IntoIterator<Item = V>,
    ) -> Result<u64> {
        let shard = conn.shard();
        let Backend::Postgres(server) = conn.backend() else {
            return self.execute_each(conn, rows).await;
        };
        let text = self.text(Dialect::Postgres);
        let shard = shard.ok_or_else(|| Fault::NoShard(text.to_owned()))?;
        let mut of_all = self.arguments.clone();
        of_all.push(shard.into());
        let rows = binary::rows(rows, &of_all);
        let copying = async {
            let mut copying = server.copy_in_raw(text).await?;
            copying.send(rows).await?;
            copying.finish().await
        };
        Ok(Box::pin(copying).await?)
    }

    /// Looks up each key. Reads the columns of the resulting rows by name.
    pub(crate) async fn fetch_each<T, V: Values<'a>>(
        self,
        conn: Conn<'_>,
        keys: impl IntoIterator<Item = V>,
        read: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        if let Backend::File(conn) = conn.backend() {
            let read = |row: &rusqlite::Row<'_>| read(&Row::of_file(row));
            return blocking(|| self.look_up(given(conn)?, keys, read));
        }
        match self.with_all(keys)? {
            Some(query) => query.fetch_all(conn, read).await,
            None => Ok(Vec::new()),
        }
    }

    /// Looks up each key in a table. Reads the columns of the resulting rows in order. A server
    /// returns all rows as one JSON value.
    pub(crate) async fn find_each<T: DeserializeOwned, V: Values<'a>>(
        self,
        conn: Conn<'_>,
        keys: impl IntoIterator<Item = V>,
        table: &'static str,
    ) -> Result<Vec<T>> {
        if let Backend::File(conn) = conn.backend() {
            return blocking(|| self.look_up(given(conn)?, keys, |row| file_row::read(row, table)));
        }
        match self.with_all(keys)? {
            Some(query) => query.fetch_one(conn, |row| row::found(row, table)).await,
            None => Ok(Vec::new()),
        }
    }

    fn look_up<T, V: Values<'a>>(
        &self,
        conn: &rusqlite::Connection,
        keys: impl IntoIterator<Item = V>,
        read: impl Fn(&rusqlite::Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = conn.prepare_cached(self.text(Dialect::Sqlite))?;
        let mut found = Vec::new();
        for key in keys {
            self.bind_row(&mut statement, key.into_array().as_ref())?;
            read_rows(&mut statement.raw_query(), &mut found, &read)?;
        }
        Ok(found)
    }

    /// Binds the values of a row, followed by the values that all rows share. Doesn't bind further
    /// values, which only a server needs.
    fn bind_row(&self, statement: &mut CachedStatement<'_>, row: &[Argument<'a>]) -> Result<()> {
        let (given, needed) = (row.len() + self.arguments.len(), statement.parameter_count());
        if given < needed {
            return Err(rusqlite::Error::InvalidParameterCount(given, needed).into());
        }
        let values = row.iter().chain(&self.arguments);
        for (index, value) in (1..=needed).zip(values) {
            statement.raw_bind_parameter(index, value)?;
        }
        Ok(())
    }

    /// Prepends all rows as the statement's first parameter. Returns `None` if there are no rows.
    fn with_all<V: Values<'a>>(
        mut self,
        rows: impl IntoIterator<Item = V>,
    ) -> Result<Option<Self>> {
        let rows = row::json(&Rows(RefCell::new(rows.into_iter())))?;
        if rows == "[]" {
            return Ok(None);
        }
        self.arguments.insert(0, rows.into());
        Ok(Some(self))
    }
}

/// Rows as a parameter for a server: a JSON array of arrays, or of single values. The iterator is
/// in a `RefCell`, because serde only borrows the value that it serializes, and iteration needs a
/// mutable reference.
struct Rows<I>(RefCell<I>);

impl<'a, V: Values<'a>, I: Iterator<Item = V>> Serialize for Rows<I> {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        let mut rows = self.0.borrow_mut();
        to.collect_seq(rows.by_ref().map(|row| JsonRow(row.into_array())))
    }
}

struct JsonRow<R>(R);

impl<'a, R: AsRef<[Argument<'a>]>> Serialize for JsonRow<R> {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        match self.0.as_ref() {
            [value] => value.serialize(to),
            values => values.serialize(to),
        }
    }
}

impl Serialize for Argument<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Self::Int(Some(value)) => to.serialize_i64(*value),
            Self::Text(Some(text)) => to.serialize_str(text),
            Self::Bytes(bytes) => to.serialize_bytes(bytes),
            Self::Int(None) | Self::Text(None) => to.serialize_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::Transid;

    use super::*;
    use crate::query::query_of;

    /// Returns the parameter that a server gets for these rows.
    fn parameter<V: for<'a> Values<'a>>(rows: Vec<V>) -> Option<String> {
        let query = query_of(String::new(), 7_i64).with_all(rows).unwrap()?;
        assert!(matches!(query.arguments[1], Argument::Int(Some(7))));
        match &query.arguments[0] {
            Argument::Text(Some(rows)) => Some(rows.clone().into_owned()),
            _ => None,
        }
    }

    #[test]
    fn a_server_is_given_arrays_of_values_and_ids_as_numbers() {
        let rows = vec![(Transid(5), true, None::<i64>, "a\"b".to_owned())];
        assert_eq!(parameter(rows).as_deref(), Some(r#"[[5,1,null,"a\"b"]]"#));
        let ids = vec![Transid(5), Transid(6)];
        assert_eq!(parameter(ids).as_deref(), Some("[5,6]"));
        assert_eq!(parameter(Vec::<i64>::new()), None);
    }
}
