//! The preferences that the owner sets for an account.

use domain::{MailKind, Theme};

use super::audit_owner;
use crate::transactions::work;
use crate::{Accounts, zones};
use store::audit::Change;
use store::error::{Refusal, Result};
use store::{accounts, applications};

impl Accounts<'_> {
    /// Sets the colours in which the portal appears to an account.
    pub async fn set_theme(&self, account_id: i64, theme: Theme) -> Result<()> {
        self.in_transaction(work!(|tx, _| accounts::set_theme(tx, account_id, theme).await)).await
    }

    /// Sets the time zone in which an account sees times, by its IANA name. `None` stands for the
    /// time zone of the browser.
    ///
    /// # Errors
    /// `TimeZoneUnknown` if the name isn't one of [`zones::names`].
    pub async fn set_time_zone(&self, account_id: i64, name: Option<&str>) -> Result<()> {
        let known = name.map(|name| zones::names().find(|known| *known == name));
        if known == Some(None) {
            return Err(Refusal::TimeZoneUnknown.into());
        }
        let name = known.flatten();
        let shard = self.shard_of_account(account_id).await?;
        self.in_transaction(work!(|tx, _| {
            accounts::set_time_zone(tx, account_id, name).await?;
            // The days of the limits are those of the account's time zone.
            tx.at(shard);
            applications::set_zone_of_limits(tx, account_id, name).await
        }))
        .await
    }

    /// Sets which optional mails an account doesn't get. Ignores kinds that aren't optional.
    pub async fn set_unwanted_mails(&self, account_id: i64, kinds: &[MailKind]) -> Result<()> {
        let optional = kinds.iter().copied().filter(|kind| kind.is_optional());
        let kinds: Vec<_> = optional.collect();
        self.in_transaction(work!(|tx, now| {
            let account = accounts::by_id(tx, account_id).await?;
            let before = account.map(|row| row.unwanted_mails).unwrap_or_default();
            if are_the_same(&before, &kinds) {
                return Ok(());
            }
            accounts::set_unwanted_mails(tx, account_id, &kinds).await?;
            let words: Vec<_> = kinds.iter().map(|kind| kind.as_str()).collect();
            let detail = format!("without: {}", words.join(", "));
            let change = Change::default().because(Some(&detail));
            audit_owner(tx, now, account_id, "account.mails", change).await
        }))
        .await
    }
}

/// True if both lists contain the same kinds, in any order.
fn are_the_same(one: &[MailKind], other: &[MailKind]) -> bool {
    one.iter().all(|kind| other.contains(kind)) && other.iter().all(|kind| one.contains(kind))
}
