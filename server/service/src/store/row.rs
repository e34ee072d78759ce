//! Reading values out of rows, with a name for what can't be read.

use domain::{ApplicationId, BatchId, HandOver, LostAnswer, MessageStatus, Transid};
use serde::Deserialize;
use serde::de::Error as _;

use super::query::Row;
use crate::error::{Error, Fault, Result};

pub(crate) fn int(row: &Row, column: &'static str) -> Result<i64> {
    row.get(column)
}

pub(crate) fn opt_int(row: &Row, column: &'static str) -> Result<Option<i64>> {
    row.get(column)
}

pub(crate) fn text(row: &Row, column: &'static str) -> Result<String> {
    row.get(column)
}

pub(crate) fn opt_text(row: &Row, column: &'static str) -> Result<Option<String>> {
    row.get(column)
}

/// A message's id.
pub(crate) fn transid(row: &Row, column: &'static str) -> Result<Transid> {
    int(row, column).map(Transid)
}

/// An application's id.
pub(crate) fn application(row: &Row, column: &'static str) -> Result<ApplicationId> {
    int(row, column).map(ApplicationId)
}

pub(crate) fn bytes(row: &Row, column: &'static str) -> Result<Vec<u8>> {
    row.get(column)
}

/// A text that must be one of a type's words.
pub(crate) fn word<T>(
    row: &Row,
    table: &'static str,
    column: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T> {
    let value = text(row, column)?;
    parse(&value).ok_or(Error::Failed(Fault::Corrupt {
        table,
        column,
        value,
    }))
}

/// A number that must be one of those that stand for a type's values.
pub(crate) fn code<T>(
    row: &Row,
    table: &'static str,
    column: &'static str,
    from_code: impl Fn(i64) -> Option<T>,
) -> Result<T> {
    let value = int(row, column)?;
    from_code(value).ok_or(Error::Failed(Fault::Corrupt {
        table,
        column,
        value: value.to_string(),
    }))
}

/// A message's status, from the number in the column of that name.
pub(crate) fn status(row: &Row, table: &'static str) -> Result<MessageStatus> {
    code(row, table, "status", MessageStatus::from_code)
}

/// A message's status, from the number in a column of a file's row.
pub(crate) fn file_status(
    row: &rusqlite::Row<'_>,
    column: usize,
    table: &'static str,
) -> Result<MessageStatus> {
    let value: i64 = row.get(column)?;
    MessageStatus::from_code(value).ok_or(Error::Failed(Fault::Corrupt {
        table,
        column: "status",
        value: value.to_string(),
    }))
}

/// How far a message's hand-over has come, from the number in a column of a file's row.
pub(crate) fn file_hand_over(row: &rusqlite::Row<'_>, column: usize) -> Result<HandOver> {
    let value: i64 = row.get(column)?;
    HandOver::try_from(value).map_err(|_| {
        Error::Failed(Fault::Corrupt {
            table: "queue",
            column: "hand_over",
            value: value.to_string(),
        })
    })
}

/// What an application wants when an answer is lost, from the word in a column of a file's row.
pub(crate) fn file_lost_answer(row: &rusqlite::Row<'_>, column: usize) -> Result<LostAnswer> {
    let value = row.get_ref(column)?.as_str().unwrap_or_default();
    LostAnswer::parse(value).ok_or_else(|| {
        Error::Failed(Fault::Corrupt {
            table: "applications",
            column: "lost_answer",
            value: value.to_owned(),
        })
    })
}

/// A message's status where rows come as JSON: its number there, too.
pub(crate) fn status_in_json<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> std::result::Result<MessageStatus, D::Error> {
    let code = i64::deserialize(from)?;
    MessageStatus::from_code(code).ok_or_else(|| D::Error::custom("no status has this number"))
}

/// A message's id where rows come as JSON: its number there, too.
pub(crate) fn transid_in_json<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> std::result::Result<Transid, D::Error> {
    i64::deserialize(from).map(Transid)
}

/// The same of the batch that a message is of, if it is of one.
pub(crate) fn batch_in_json<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> std::result::Result<Option<BatchId>, D::Error> {
    Ok(Option::<i64>::deserialize(from)?.map(BatchId))
}

/// A JSON parameter.
pub(crate) fn json(rows: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(rows).map_err(|error| Error::Failed(error.into()))
}

/// Rows that came as one JSON value, in the column `found`.
pub(crate) fn found<T: serde::de::DeserializeOwned>(row: &Row, table: &'static str) -> Result<T> {
    let value = text(row, "found")?;
    // Where it is and not what it is: numbers and texts must not get into the log.
    serde_json::from_str(&value).map_err(|error| {
        Error::Failed(Fault::Corrupt {
            table,
            column: "found",
            value: format!("JSON that doesn't fit at its byte {}", error.column()),
        })
    })
}

/// A write must have touched exactly so many rows: anything else is a fault that must not commit.
pub(crate) fn touched(table: &'static str, expected: usize, actual: u64) -> Result<()> {
    if usize::try_from(actual).is_ok_and(|actual| actual == expected) {
        Ok(())
    } else {
        Err(Error::Failed(Fault::RowCount {
            table,
            expected,
            actual,
        }))
    }
}

/// Messages' ids as a JSON parameter.
pub(crate) fn numbers(ids: &[Transid]) -> Result<String> {
    /// As numbers, where an id outside the database is a text.
    struct Numbers<'a>(&'a [Transid]);
    impl serde::Serialize for Numbers<'_> {
        fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
            to.collect_seq(self.0.iter().map(|id| id.0))
        }
    }
    json(&Numbers(ids))
}

/// Ids as the three parameters that statements over messages take.
pub(crate) struct Ids {
    pub(crate) json: String,
    pub(crate) least: i64,
    pub(crate) greatest: i64,
}

impl Ids {
    pub(crate) fn new(ids: &[Transid]) -> Result<Self> {
        Ok(Self {
            json: numbers(ids)?,
            least: ids.iter().min().map_or(0, |id| id.0),
            greatest: ids.iter().max().map_or(0, |id| id.0),
        })
    }
}
