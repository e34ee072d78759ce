//! The audit log.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::sync::LazyLock;

use domain::audit_action;
use domain::decision::Decided;
use domain::support::AuditRecord;
use domain::{Reference, Timestamp};

use super::query::{Argument, Conn, Row, query, query_of};
use super::row::from_row;
use super::sql::{Sql, statements};
use super::{accounts, audit_chain};
use crate::error::Result;

statements! {
    const INSERT: Sql = Sql::same(r"
        INSERT INTO audit (at, actor, address, action, subject, before, after, detail,
                           chain, number, hash, application)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)");
    const HAS_SINCE: Sql = Sql::same(r"
        SELECT id FROM audit
        WHERE subject = $1 AND actor = $2 AND action = $3 AND at > $4 LIMIT 1");
    const LAST: Sql = Sql::same(r"
        SELECT actor, at, action, before, after FROM audit
        WHERE subject = $1 AND (action = $2 OR action = $3 OR action = $4)
        ORDER BY id DESC LIMIT 1");
}

/// The start of each list statement. The conditions of [`Wanted`] follow.
const LISTED: &str = "SELECT id, at, actor, address, action, subject, before, after, detail \
                      FROM audit WHERE id < $1";

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

/// The operating system user who runs the program: the name, or the number if the user has no name.
/// For root, also the user who ran sudo, if any.
static OPERATOR: LazyLock<String> = LazyLock::new(|| {
    // The user isn't read from the environment, where anybody can claim any name.
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

/// The change that an entry records. It never contains a secret.
#[derive(Clone, Copy, Default)]
pub struct Change<'a> {
    pub before: Option<&'a str>,
    pub after: Option<&'a str>,
    /// For example a reason or an amount.
    pub detail: Option<&'a str>,
}

impl<'a> Change<'a> {
    /// A change of one value.
    pub const fn of(before: &'a str, after: &'a str) -> Self {
        Self { before: Some(before), after: Some(after), detail: None }
    }

    /// Adds a reason, if there is one.
    pub const fn because(self, reason: Option<&'a str>) -> Self {
        Self { detail: reason, ..self }
    }
}

/// Writes an entry into the audit log, in the transaction of the action itself.
pub async fn insert(
    conn: Conn<'_>,
    now: Timestamp,
    actor: &Actor,
    action: &'static str,
    subject: &str,
    detail: Option<&str>,
) -> Result<()> {
    let change = Change::default().because(detail);
    insert_change(conn, now, actor, action, subject, change).await
}

/// Like [`insert`], about a message or a batch of an application. Filters by the application's
/// reference also find the entry.
pub async fn insert_of(
    conn: Conn<'_>,
    now: Timestamp,
    actor: &Actor,
    action: &'static str,
    (application, subject): (Reference, &str),
    detail: Option<&str>,
) -> Result<()> {
    let change = Change::default().because(detail);
    insert_change_of(conn, now, actor, action, (Some(application), subject), change).await
}

/// Like [`insert`], with the values before and after. Writes no entry if the two values are equal,
/// because nothing has changed.
pub async fn insert_change(
    conn: Conn<'_>,
    now: Timestamp,
    actor: &Actor,
    action: &'static str,
    subject: &str,
    change: Change<'_>,
) -> Result<()> {
    if change.before.is_some() && change.before == change.after {
        return Ok(());
    }
    write(conn, now, actor, action, (subject, None), change).await
}

/// Like [`insert_change`], about a record of an application. Filters by the application's reference
/// also find the entry.
pub async fn insert_change_of(
    conn: Conn<'_>,
    now: Timestamp,
    actor: &Actor,
    action: &'static str,
    (application, subject): (Option<Reference>, &str),
    change: Change<'_>,
) -> Result<()> {
    let reference = application.map(|reference| reference.to_string());
    write(conn, now, actor, action, (subject, reference.as_deref()), change).await
}

async fn write(
    conn: Conn<'_>,
    now: Timestamp,
    actor: &Actor,
    action: &'static str,
    (subject, application): (&str, Option<&str>),
    change: Change<'_>,
) -> Result<()> {
    debug_assert!(audit_action::sentence(action).is_some(), "{action} has no sentence");
    let chain = match actor {
        Actor::Account(id) => *id,
        Actor::CommandLine | Actor::System => audit_chain::OF_NO_ACCOUNT,
    };
    let position = audit_chain::next(&mut *conn, chain).await?;
    let entry = AuditRecord {
        id: 0,
        at: now,
        who: actor.to_string(),
        address: conn.client_address().map(str::to_owned),
        action: action.to_owned(),
        subject: subject.to_owned(),
        before: change.before.map(str::to_owned),
        after: change.after.map(str::to_owned),
        detail: change.detail.map(str::to_owned),
    };
    let hash = audit_chain::end(&mut *conn, &position, &entry).await?;
    let values = (
        now,
        entry.who.as_str(),
        entry.address.as_deref(),
        action,
        subject,
        change.before,
        change.after,
        change.detail,
        position.chain,
        position.number,
        hash.as_str(),
        application,
    );
    query(INSERT, values).execute(conn).await.map(drop)
}

/// Returns whether an actor did this to a subject after a time.
pub async fn has_since(
    conn: Conn<'_>,
    actor: &Actor,
    action: &str,
    subject: &str,
    since: Timestamp,
) -> Result<bool> {
    query(HAS_SINCE, (subject, actor.to_string(), action, since)).finds(conn).await
}

/// The conditions of a list. An entry must meet all conditions that are set.
#[derive(Default)]
pub struct Wanted {
    /// The text that the actor starts with.
    pub actor_begins: Option<String>,
    pub actor: Option<String>,
    pub subject: Option<String>,
    /// The reference of an application. The subject is the application itself, or one of its
    /// messages, batches or deposits.
    pub of_application: Option<String>,
    /// The reference of an application whose message, batch or deposit is the subject.
    pub record_of: Option<String>,
    pub action: Option<String>,
    /// Entries at or after this time.
    pub from: Option<Timestamp>,
    /// Entries before this time.
    pub to: Option<Timestamp>,
}

impl Wanted {
    /// Returns the conditions on columns that are set, each with its value. [`Wanted::listing`]
    /// replaces every `?` by the number of the parameter.
    fn conditions(&self) -> Vec<(&'static str, Argument<'_>)> {
        let text = |condition, text: &'_ Option<String>| {
            text.clone().map(|text| (condition, Argument::from(text)))
        };
        let time = |condition, at: Option<Timestamp>| at.map(|at| (condition, Argument::from(at)));
        let all = [
            text("subject = ?", &self.subject),
            text("actor = ?", &self.actor),
            text("substr(actor, 1, length(?)) = ?", &self.actor_begins),
            text("application = ?", &self.record_of),
            text("action = ?", &self.action),
            time("at >= ?", self.from),
            time("at < ?", self.to),
        ];
        all.into_iter().flatten().collect()
    }

    /// Returns the statement of a list, and its values from the third on. The first two are the ID
    /// below which it lists and the maximum number of entries. The statement consists of constant
    /// parts only, so nothing can be injected.
    pub(crate) fn listing(&self) -> (String, Vec<Argument<'_>>) {
        let mut sql = LISTED.to_owned();
        let (mut arguments, mut place) = (Vec::new(), 2);
        for (condition, argument) in self.conditions() {
            place += 1;
            sql.push_str(" AND ");
            sql.push_str(&condition.replace('?', &format!("${place}")));
            arguments.push(argument);
        }
        let newest = "ORDER BY id DESC LIMIT $2";
        let Some(reference) = &self.of_application else {
            return (format!("{sql} {newest}"), arguments);
        };
        arguments.push(Argument::from(reference.clone()));
        place += 1;
        // Each half reads its newest entries from its own index. With OR, the database would read
        // and sort all entries.
        let sql = format!(
            "SELECT * FROM ({sql} AND subject = ${place} {newest}) AS own \
             UNION ALL \
             SELECT * FROM ({sql} AND application = ${place} AND subject <> ${place} {newest}) \
             AS about {newest}"
        );
        (sql, arguments)
    }
}

/// Returns the entries with IDs below `below`, newest first.
pub async fn list(
    conn: Conn<'_>,
    wanted: &Wanted,
    below: i64,
    limit: i64,
) -> Result<Vec<AuditRecord>> {
    let (sql, arguments) = wanted.listing();
    query_of(sql, (below, limit)).bind(arguments).fetch_all(conn, record).await
}

pub fn record(row: &Row<'_>) -> Result<AuditRecord> {
    from_row!(row => AuditRecord {
        id, at, who: row.get("actor")?, address, action, subject, before, after, detail,
    })
}

/// Returns who did the last of these actions on a subject, and when.
pub async fn last(
    conn: Conn<'_>,
    subject: &str,
    [first, second, third]: [&'static str; 3],
) -> Result<Option<Decided>> {
    let read = |row: &Row<'_>| {
        let (action, before): (String, Option<String>) = (row.get("action")?, row.get("before")?);
        let after: Option<String> = row.get("after")?;
        let what = audit_action::clause(&action, before.as_deref(), after.as_deref());
        let what = what.map(String::into_boxed_str);
        Ok(Decided { by: row.get("actor")?, at: row.get("at")?, what })
    };
    let found = query(LAST, (subject, first, second, third)).fetch_optional(&mut *conn, read);
    let Some(Decided { by: actor, at, what }) = found.await? else {
        return Ok(None);
    };
    let account = actor.strip_prefix("account ").map(str::parse);
    let email = match account {
        Some(Ok(id)) => accounts::by_id(conn, id).await?.map(|row| row.record.email),
        _ => None,
    };
    Ok(Some(Decided { by: email.unwrap_or(actor), at, what }))
}
