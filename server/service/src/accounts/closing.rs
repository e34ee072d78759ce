//! Permanent closing of an account by its owner.

use std::collections::BTreeSet;

use domain::records::AccountRecord;
use domain::security_event::SecurityEventKind;
use domain::{ApiKey, KeyKind};

use crate::Accounts;
use crate::accounts::audit_owner;
use crate::applications::sender_names::withdraw_requests;
use crate::mail::{self, texts};
use crate::transactions::work;
use store::audit::Change;
use store::error::{Refusal, Result};
use store::{
    accounts, api_calls, api_keys, applications, inbound_numbers, opt_outs, sessions, webhooks,
};

impl Accounts<'_> {
    /// Closes an account permanently. Once this commits, nobody can sign in, and the account's keys
    /// no longer work. Its open requests are withdrawn. Its queued messages are deferred until they
    /// expire, and their price is then released. `references` is the owner's input, which must list
    /// the references of all the account's applications.
    ///
    /// # Errors
    /// `StaffCannotClose`, `WrongPassword`, `ReferencesDiffer`, `Throttled`.
    pub async fn close_account(
        &self,
        account: &AccountRecord,
        password: &str,
        references: &str,
    ) -> Result<()> {
        let verified = self.verify_password(account.id, password).await?;
        let typed: BTreeSet<String> = references
            .split(|c: char| c.is_whitespace() || c == ',')
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect();
        let shard = self.shard_of_account(account.id).await?;
        let closed = self.event(SecurityEventKind::AccountClosed, Some(account.id));
        let (service, account) = (self.0.clone(), account.clone());
        self.in_transaction(work!(|tx, now| {
            tx.at(shard);
            let id = account.id;
            accounts::still_in_force(tx, id, &verified).await?;
            let row = accounts::by_id(tx, id).await?;
            if row.is_none_or(|row| row.record.staff) {
                return Err(Refusal::StaffCannotClose.into());
            }
            let mut owned = applications::ids_by_account(tx, id).await?;
            // All transactions that write keys lock the rows in this order.
            owned.sort_unstable_by_key(|application| application.reference);
            let meant: BTreeSet<_> = owned.iter().map(|it| it.reference.to_string()).collect();
            if typed != meant {
                return Err(Refusal::ReferencesDiffer.into());
            }
            for application in &owned {
                for kind in [KeyKind::Live, KeyKind::Test] {
                    // Nobody ever learns this key.
                    let entropy = service.entropy().bytes();
                    let key = ApiKey::from_entropy(application.reference, kind, entropy);
                    applications::set_hash(tx, application.id, kind, &key.hash()).await?;
                }
                // Once these rows are deleted, no process can store the calls that it has
                // buffered.
                api_keys::forget(tx, application.reference).await?;
                api_calls::forget(tx, application.reference).await?;
                webhooks::remove_all(tx, application.id, now).await?;
                inbound_numbers::remove_all(tx, application.id).await?;
                opt_outs::remove_all(tx, application.id).await?;
                withdraw_requests(tx, application.reference, now).await?;
            }
            applications::set_disabled(tx, id, Some(now)).await?;
            accounts::close(tx, id, now).await?;
            accounts::spend_resets(tx, id, now).await?;
            sessions::delete_others(tx, id, "").await?;
            mail::put(tx, &account, &texts::account_closed(), now).await?;
            let references: Vec<_> = meant.into_iter().collect();
            let references = format!("applications: {}", references.join(", "));
            let change = Change::of("open", "closed").because(Some(&references));
            audit_owner(tx, now, id, "account.close", change).await?;
            closed.store(tx, now).await
        }))
        .await
    }
}
