//! The history of an application, from the audit log.

use std::cmp::Reverse;

use domain::Reference;
use domain::history::{HistoryAction, HistoryAuthor, HistoryEntry};
use domain::support::AuditRecord;

use crate::Applications;
use crate::applications::owned;
use store::audit::{self, Actor, Wanted};
use store::error::Result;

/// The number of audit entries that a history is made from.
const ENTRIES: i64 = 100;
/// The actions that credit a deposit.
const DEPOSITS: [HistoryAction; 2] =
    [HistoryAction::DepositCredited, HistoryAction::DepositAssigned];

impl Applications<'_> {
    /// Returns the history of one of an account's applications, newest first. It has the entries
    /// that the owner may see among the last 100 audit entries about the application, and its last
    /// deposits.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn application_history(
        &self,
        account_id: i64,
        reference: Reference,
    ) -> Result<Vec<HistoryEntry>> {
        let mut conn = self.read_of(reference).await?;
        owned(&mut conn, account_id, reference).await?;
        drop(conn);
        let wanted = Wanted { subject: Some(reference.to_string()), ..Wanted::default() };
        let mut conn = self.store().read().await?;
        let mut entries = audit::list(&mut conn, &wanted, i64::MAX, ENTRIES).await?;
        // The subject of a deposit is its bank ID, which may look like this reference.
        entries.retain(|entry| !DEPOSITS.iter().any(|action| action.as_str() == entry.action));
        for action in DEPOSITS {
            let wanted = Wanted {
                action: Some(action.as_str().to_owned()),
                record_of: Some(reference.to_string()),
                ..Wanted::default()
            };
            entries.extend(audit::list(&mut conn, &wanted, i64::MAX, ENTRIES).await?);
        }
        entries.sort_by_key(|entry| Reverse(entry.id));
        let owner = Actor::Account(account_id).to_string();
        Ok(entries.into_iter().filter_map(|entry| for_owner(entry, &owner)).collect())
    }
}

/// Returns the entry as the owner sees it, or `None` if it is for staff only.
fn for_owner(entry: AuditRecord, owner: &str) -> Option<HistoryEntry> {
    let action = HistoryAction::parse(&entry.action)?;
    // If staff assigned the deposit by mistake, the payer's text belongs to somebody else.
    let detail = entry.detail.filter(|_| !DEPOSITS.contains(&action));
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
