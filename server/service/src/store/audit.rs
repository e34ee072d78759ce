//! The audit log.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::sync::LazyLock;

use domain::Timestamp;
use domain::decision::Decided;

use super::accounts;
use super::query::{Connection, query};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const INSERT: Sql = Sql::same(r"
        INSERT INTO audit (at, actor, action, subject, detail) VALUES ($1, $2, $3, $4, $5)");
    const LAST: Sql = Sql::same(r"
        SELECT actor, at
        FROM audit
        WHERE subject = $1 AND (action = $2 OR action = $3 OR action = $4)
        ORDER BY id DESC LIMIT 1");
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
            Self::CommandLine => write!(f, "command line ({})", *OPERATOR),
            Self::Account(id) => write!(f, "account {id}"),
            Self::System => f.write_str("system"),
        }
    }
}

/// The operating system's user who runs the program: the name, or the number of one that has none.
/// Who became another user by sudo is named too.
static OPERATOR: LazyLock<String> = LazyLock::new(|| {
    // Not from the environment, where anybody can name themselves.
    let Ok(id) = std::fs::metadata("/proc/self").map(|process| process.uid()) else {
        return "unknown user".to_owned();
    };
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(id)).then(|| name.to_owned())
    });
    let user = named.unwrap_or_else(|| format!("user {id}"));
    match std::env::var("SUDO_USER") {
        Ok(before) if id == 0 => format!("{user}, sudo by {before}"),
        _ => user,
    }
});

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

/// The last of these actions on a subject: who did it, and when.
pub(crate) async fn last(
    conn: &mut dyn Connection,
    subject: &str,
    [first, second, third]: [&'static str; 3],
) -> Result<Option<Decided>> {
    let found: Option<(String, _)> = query(LAST, (subject, first, second, third))
        .fetch_optional(&mut *conn, |row| Ok((row.get("actor")?, row.get("at")?)))
        .await?;
    let Some((actor, at)) = found else {
        return Ok(None);
    };
    let account = actor.strip_prefix("account ").map(str::parse);
    let email = match account {
        Some(Ok(id)) => accounts::by_id(conn, id).await?.map(|row| row.record.email),
        _ => None,
    };
    Ok(Some(Decided {
        by: email.unwrap_or(actor),
        at,
    }))
}
