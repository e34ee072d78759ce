//! Replaces an application's keys.

use domain::security_event::SecurityEventKind;
use domain::{AlarmKind, ApiKey, KeyKind, Reference, Refusal};

use crate::Applications;
use crate::application_events::Cause;
use crate::applications::call_log::replaced_since;
use crate::applications::owned;
use crate::mail::{self, texts};
use crate::token::token_hash;
use crate::transactions::work;
use store::audit::{self, Actor};
use store::error::Result;
use store::{accounts, alarms, api_calls, api_keys, applications, sessions};

impl Applications<'_> {
    /// Replaces a key. Once this commits, the old key no longer works, and every device of the
    /// account except the caller's is signed out.
    ///
    /// `last_four` is the last four characters of the key that the caller was shown. If another key
    /// is in force by now, nothing is replaced. Without `last_four`, the key in force is replaced
    /// in any case.
    ///
    /// # Errors
    /// `WrongPassword`, `Throttled`, `NoSuchApplication`, `KeyReplacedBefore`.
    pub async fn replace_key(
        &self,
        account_id: i64,
        reference: Reference,
        kind: KeyKind,
        password: &str,
        current_token: &str,
        last_four: Option<&str>,
    ) -> Result<ApiKey> {
        let verified = self.accounts().verify_password(account_id, password).await?;
        let key = ApiKey::from_entropy(reference, kind, self.entropy().bytes());
        let keep = token_hash(current_token);
        let shown = last_four.map(str::to_owned);
        let mut replaced = self.accounts().event(SecurityEventKind::KeyReplaced, Some(account_id));
        replaced.detail = Some(reference.to_string());
        self.in_transaction_of(
            reference,
            work!(|tx, now| {
                accounts::still_in_force(tx, account_id, &verified).await?;
                let row = owned(tx, account_id, reference).await?;
                if shown.is_some() && api_keys::last_four(tx, (reference, kind)).await? != shown {
                    return Err(Refusal::KeyReplacedBefore.into());
                }
                if let Some(old) = applications::keys_by_reference(tx, reference).await? {
                    let (hash, since) = (old.hash_of(kind), replaced_since(now));
                    api_calls::replaced(tx, reference, hash, now, since).await?;
                }
                applications::set_hash(tx, row.id, kind, &key.hash()).await?;
                api_keys::made(tx, (reference, kind), key.last_four(), now).await?;
                let action = match kind {
                    KeyKind::Live => "key.replace_live",
                    KeyKind::Test => "key.replace_test",
                };
                if kind == KeyKind::Live {
                    // The leaked key gives access to nothing any more.
                    alarms::mark_kind_read(tx, row.id, AlarmKind::LeakedKey, now).await?;
                }
                sessions::delete_others(tx, account_id, &keep).await?;
                let (actor, subject) = (Actor::Account(account_id), reference.to_string());
                audit::insert(tx, now, &actor, action, &subject, None).await?;
                mail::put(tx, &row, &texts::key_replaced(reference, kind), now).await?;
                Cause::KeyReplaced(kind).put(tx, row.id, now);
                replaced.store(tx, now).await?;
                Ok(key)
            }),
        )
        .await
    }

    /// Whether a key is in force. The demo calls this, because it prints its keys at every start.
    pub async fn key_in_force(&self, key: &ApiKey) -> Result<bool> {
        let row = self.messages().key_row(key.reference()).await?;
        Ok(row.is_some_and(|row| row.holds(key)))
    }
}
