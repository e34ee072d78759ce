//! Reads the audit log.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use domain::records::Paged;
use domain::support::AuditRecord;
use domain::{Reference, Timestamp};

use crate::Support;
use store::accounts;
use store::audit::{self, Actor, Wanted};
use store::error::{Refusal, Result};
use store::query::Conn;

/// The maximum number of entries per page.
const ENTRIES_MAX: i64 = 1000;
/// The prefix of an account's name in the audit log.
const ACCOUNT: &str = "account ";

/// Which entries of the audit log to list. All given conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// The email of an account, or a prefix of `command line (USER)` or `system`.
    pub who: Option<String>,
    /// The email of an account, or a subject as the log stores it, for example a carrier or a bank
    /// ID. A reference also finds the entries about the application's messages, batches and
    /// deposits.
    pub subject: Option<String>,
    pub action: Option<String>,
    /// Only entries at or after this time.
    pub from: Option<Timestamp>,
    /// Only entries before this time.
    pub to: Option<Timestamp>,
    /// The maximum number of returned entries, 1 to 1000.
    pub limit: i64,
    /// The `next` cursor of an earlier answer.
    pub cursor: Option<String>,
}

impl Support<'_> {
    /// Returns entries of the audit log, newest first.
    ///
    /// # Errors
    /// `InvalidCursor`.
    pub async fn audit(&self, filter: &AuditFilter) -> Result<Paged<AuditRecord>> {
        let below = match &filter.cursor {
            Some(text) => text.parse().map_err(|_| Refusal::InvalidCursor)?,
            None => i64::MAX,
        };
        let limit = filter.limit.clamp(1, ENTRIES_MAX);
        let mut conn = self.store().read().await?;
        let wanted = wanted(&mut conn, filter).await?;
        let mut entries = audit::list(&mut conn, &wanted, below, limit + 1).await?;
        name_accounts(
            &mut conn,
            entries.iter_mut().flat_map(|entry| [&mut entry.who, &mut entry.subject]),
        )
        .await?;
        Ok(Paged::of(entries, limit, |entry| entry.id.to_string()))
    }
}

/// Converts a filter to the values that the log stores. Removes NUL, which PostgreSQL's texts can't
/// contain.
async fn wanted(conn: Conn<'_>, filter: &AuditFilter) -> Result<Wanted> {
    let given = |text: &Option<String>| text.as_ref().map(|text| text.replace('\0', ""));
    let mut wanted = Wanted {
        action: given(&filter.action),
        from: filter.from,
        to: filter.to,
        ..Wanted::default()
    };
    if let Some(subject) = given(&filter.subject) {
        if Reference::parse(&subject).is_ok() {
            wanted.of_application = Some(subject);
        } else {
            wanted.subject = Some(as_logged(conn, subject).await?);
        }
    }
    if let Some(who) = given(&filter.who) {
        let who = as_logged(conn, who).await?;
        if who.starts_with(ACCOUNT) {
            wanted.actor = Some(who);
        } else {
            wanted.actor_begins = Some(who);
        }
    }
    Ok(wanted)
}

/// Converts an email to the log's name for the account. Returns any other text unchanged.
async fn as_logged(conn: Conn<'_>, text: String) -> Result<String> {
    if !text.contains('@') {
        return Ok(text);
    }
    let found = accounts::by_email(conn, &text.trim().to_lowercase()).await?;
    Ok(found.map_or(text, |row| Actor::Account(row.record.id).to_string()))
}

/// Replaces the log's names of accounts with the accounts' emails.
pub(crate) async fn name_accounts(
    conn: Conn<'_>,
    texts: impl Iterator<Item = &mut String>,
) -> Result<()> {
    let mut emails: HashMap<i64, Option<String>> = HashMap::new();
    for text in texts {
        let id = text.strip_prefix(ACCOUNT).and_then(|id| id.parse().ok());
        let Some(id) = id else { continue };
        let email = match emails.entry(id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let found = accounts::by_id(conn, id).await?;
                unknown.insert(found.map(|row| row.record.email))
            }
        };
        if let Some(email) = email {
            text.clone_from(email);
        }
    }
    Ok(())
}
