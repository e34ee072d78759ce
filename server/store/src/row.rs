//! Reads values from rows. A value that can't be read is a fault that names its column.

use domain::{BatchId, MessageStatus, Reference, Timestamp, Transid};
use serde::Deserialize;
use serde::de::Error as _;

use super::query::Row;
use crate::error::{Error, Fault, Result};

/// Makes a struct of a row. A field without a value is read from the column of its name.
macro_rules! from_row {
    ($row:ident => $type:ident { $($field:ident $(: $value:expr)?),* $(,)? }) => {
        Ok($type { $($field: $crate::row::from_row!(@ $row $field $($value)?)),* })
    };
    (@ $row:ident $field:ident) => { $row.get(stringify!($field))? };
    (@ $row:ident $field:ident $value:expr) => { $value };
}
pub(crate) use from_row;

/// Reads a value from a text column that must hold one of a type's codes.
pub fn word<T>(
    row: &Row<'_>,
    table: &'static str,
    column: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T> {
    let value: String = row.get(column)?;
    parse(&value).ok_or(Error::Failed(Fault::Corrupt { table, column: column.into(), value }))
}

pub fn reference(row: &Row<'_>) -> Result<Reference> {
    let parse = |text: &str| Reference::parse(text).ok();
    word(row, "applications", "reference", parse)
}

/// Reads a value from a number column that must hold one of a type's codes.
pub fn code<T>(
    row: &Row<'_>,
    table: &'static str,
    column: &'static str,
    from_code: impl Fn(i64) -> Option<T>,
) -> Result<T> {
    let value = row.get(column)?;
    from_code(value).ok_or(Error::Failed(Fault::Corrupt {
        table,
        column: column.into(),
        value: value.to_string(),
    }))
}

/// Reads a message's status from the column `status`.
pub fn status(row: &Row<'_>, table: &'static str) -> Result<MessageStatus> {
    code(row, table, "status", MessageStatus::from_code)
}

pub(crate) fn status_from_number<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> std::result::Result<MessageStatus, D::Error> {
    let code = i64::deserialize(from)?;
    MessageStatus::from_code(code).ok_or_else(|| D::Error::custom("no status has this number"))
}

/// Deserializes a message's ID from a number.
pub(crate) fn transid_from_number<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> std::result::Result<Transid, D::Error> {
    i64::deserialize(from).map(Transid)
}

/// Deserializes a time from Unix milliseconds.
pub(crate) fn timestamp_from_number<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> std::result::Result<Timestamp, D::Error> {
    i64::deserialize(from).map(Timestamp::from_unix_ms)
}

/// Deserializes the ID of a message's batch, if the message belongs to one.
pub(crate) fn batch_from_number<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> std::result::Result<Option<BatchId>, D::Error> {
    Ok(Option::<i64>::deserialize(from)?.map(BatchId))
}

pub fn json(rows: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(rows).map_err(|error| Error::Failed(error.into()))
}

/// Reads rows that the database returned as one JSON value in the column `found`.
pub fn found<T: serde::de::DeserializeOwned>(row: &Row<'_>, table: &'static str) -> Result<T> {
    let value: String = row.get("found")?;
    // The fault gives the position but not the value: phone numbers and texts must not get into the
    // log.
    serde_json::from_str(&value).map_err(|error| {
        Error::Failed(Fault::Corrupt {
            table,
            column: "found".into(),
            value: format!("JSON with an unexpected value at byte {}", error.column()),
        })
    })
}

/// Parses JSON that is stored as text.
pub fn parse_json<T: serde::de::DeserializeOwned>(
    table: &'static str,
    column: &'static str,
    value: &str,
) -> Result<T> {
    serde_json::from_str(value).map_err(|_| {
        let (column, value) = (column.into(), value.to_owned());
        Error::Failed(Fault::Corrupt { table, column, value })
    })
}

/// Fails unless a write affected exactly the expected number of rows. If the number differs, the
/// transaction must not be committed.
pub fn touched(table: &'static str, expected: usize, actual: u64) -> Result<()> {
    if usize::try_from(actual).is_ok_and(|actual| actual == expected) {
        Ok(())
    } else {
        Err(Error::Failed(Fault::RowCount { table, expected, actual }))
    }
}

/// Serializes message IDs as a JSON parameter.
pub fn numbers(ids: &[Transid]) -> Result<String> {
    /// Serializes IDs as numbers. Outside the database an ID is serialized as text.
    struct Numbers<'a>(&'a [Transid]);
    impl serde::Serialize for Numbers<'_> {
        fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
            to.collect_seq(self.0.iter().map(|id| id.0))
        }
    }
    json(&Numbers(ids))
}
