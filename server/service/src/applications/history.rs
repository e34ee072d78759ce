//! What was done with an application, from the audit log.

use domain::Reference;
use domain::history::{HistoryAction, HistoryAuthor, HistoryEntry};
use domain::support::AuditRecord;

use crate::Service;
use crate::applications::owned;
use crate::error::Result;
use crate::store::audit::{self, Actor, Wanted};

/// The most entries that an application's owner is shown.
const ENTRIES: i64 = 100;

impl Service {
    /// What was done with one of an account's applications, newest first: of the last 100 entries
    /// of the audit log those that its owner reads.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn application_history(
        &self,
        account_id: i64,
        reference: Reference,
    ) -> Result<Vec<HistoryEntry>> {
        let shard = self.shard_of(reference).await?;
        let mut conn = self.store().read_at(shard).await?;
        owned(&mut conn, account_id, reference).await?;
        drop(conn);
        let wanted = Wanted {
            subject: Some(reference.to_string()),
            ..Wanted::default()
        };
        let mut conn = self.store().read().await?;
        let entries = audit::list(&mut conn, &wanted, i64::MAX, ENTRIES).await?;
        let owner = Actor::Account(account_id).to_string();
        Ok(entries
            .into_iter()
            .filter_map(|entry| for_owner(entry, &owner))
            .collect())
    }
}

/// The entry as the owner reads it; `None` where it is for staff.
fn for_owner(entry: AuditRecord, owner: &str) -> Option<HistoryEntry> {
    let action = HistoryAction::parse(&entry.action)?;
    // A payment with a reference that was given to an application only later wasn't credited to it.
    if action == HistoryAction::DepositCredited && entry.after.is_none() {
        return None;
    }
    // What the payer wrote may be of somebody else, whose money was assigned by mistake.
    let is_deposit = [
        HistoryAction::DepositCredited,
        HistoryAction::DepositAssigned,
    ];
    let detail = entry.detail.filter(|_| !is_deposit.contains(&action));
    let author = match entry.who.as_str() {
        who if who == owner => HistoryAuthor::Owner,
        "system" => HistoryAuthor::System,
        _ => HistoryAuthor::Support,
    };
    Some(HistoryEntry {
        at: entry.at,
        author,
        action,
        before: entry.before,
        after: entry.after,
        detail,
    })
}
