//! The audit log.

use std::fmt;

use domain::Timestamp;

use super::query::{Connection, query};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const INSERT: Sql = Sql::same(r"
        INSERT INTO audit (at, actor, action, subject, detail) VALUES ($1, $2, $3, $4, $5)");
}

/// The actor of an entry in the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// The operator, who runs the program on the command line.
    CommandLine,
    /// A signed-in account.
    Account(i64),
    /// The service itself, without a person.
    System,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandLine => f.write_str("command line"),
            Self::Account(id) => write!(f, "account {id}"),
            Self::System => f.write_str("system"),
        }
    }
}

/// Writes an entry into the audit log, in the transaction of the action itself.
pub(crate) async fn insert(
    conn: &mut dyn Connection,
    now: Timestamp,
    actor: &Actor,
    action: &'static str,
    subject: &str,
    detail: Option<&str>,
) -> Result<()> {
    query(INSERT, (now, actor.to_string(), action, subject, detail))
        .execute(conn)
        .await
        .map(drop)
}
