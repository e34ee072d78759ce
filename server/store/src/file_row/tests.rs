use domain::{ApplicationId, Kind, Submission};
use serde::Deserialize;

use super::*;

#[derive(Debug, Deserialize)]
struct Inner {
    segment: u16,
    application_id: ApplicationId,
}

#[derive(Debug, Deserialize)]
struct Outer {
    inner: Inner,
    kind: Kind,
    submission: Submission,
    sender: Option<String>,
    error: Option<String>,
}

fn read_one(values: &str) -> Result<Outer> {
    let conn = rusqlite::Connection::open_in_memory()?;
    let names = "segment, application_id, kind, submission, sender, error";
    let sql = format!("WITH t ({names}) AS (VALUES ({values})) SELECT * FROM t");
    let mut statement = conn.prepare(&sql)?;
    let mut rows = statement.query([])?;
    read(rows.next()?.unwrap(), "queue")
}

#[test]
fn columns_are_read_in_their_order_those_of_a_part_too() {
    let read = read_one("3, 8, 'local', 2, NULL, 'gone'").unwrap();
    assert_eq!((read.inner.segment, read.inner.application_id.0), (3, 8));
    assert_eq!(read.kind, Kind::Local);
    assert_eq!(read.submission, Submission::try_from(2).unwrap());
    assert_eq!((read.sender, read.error.as_deref()), (None, Some("gone")));
}

#[test]
fn a_value_that_cannot_be_read_is_named_with_its_column() {
    for (values, column, held) in [
        ("70000, 8, 'local', 2, NULL, ''", "segment", "70000"),
        ("3, 8, 'abroad', 2, NULL, ''", "kind", "abroad"),
        ("3, 8, 'local', 9, NULL, ''", "submission", "9"),
        ("3, 8, 'local', 2, CAST(x'ff' AS TEXT), ''", "sender", "a text of 1 bytes"),
    ] {
        match read_one(values).unwrap_err() {
            Error::Failed(Fault::Corrupt { table: "queue", column: of, value }) => {
                assert_eq!((&*of, &*value), (column, held));
            }
            other => panic!("{other:?}"),
        }
    }
}
