//! Accounts on the support pages: the list, an account with its notes, and visits to an
//! application.

use domain::Reference;
use domain::note::parse_note;
use domain::records::{ApplicationRecord, Paged};
use domain::support::{AccountFile, AccountLine, NoteRecord, Owner};

use super::audit::{AuditFilter, name_accounts};
use crate::Support;
use crate::transactions::work;
use store::account_notes;
use store::accounts::{self, AccountRow};
use store::applications;
use store::audit::{self, Actor};
use store::error::{Refusal, Result};

/// The maximum number of accounts per page.
const ACCOUNTS_MAX: i64 = 100;
/// The number of audit log entries on an account's page.
const ENTRIES: i64 = 10;
/// A second visit within this time isn't recorded.
const VISIT_MS: i64 = 60 * 60 * 1000;

impl Support<'_> {
    /// Returns the accounts whose email contains `part`, ordered by email. An empty `part` matches
    /// all.
    pub async fn account_list(
        &self,
        part: &str,
        cursor: Option<&str>,
        limit: i64,
    ) -> Result<Paged<AccountLine>> {
        // PostgreSQL's texts can't contain NUL, and no email contains it.
        let part = part.trim().to_lowercase().replace('\0', "");
        let after = cursor.unwrap_or_default().replace('\0', "");
        let limit = limit.clamp(1, ACCOUNTS_MAX);
        let mut conn = self.store().read().await?;
        let rows = accounts::with_part(&mut conn, &part, &after, limit + 1).await?;
        let lines = rows.into_iter().map(line).collect();
        Ok(Paged::of(lines, limit, |line: &AccountLine| line.account.email.clone()))
    }

    /// Returns an account with everything that staff see of it.
    ///
    /// # Errors
    /// `NoSuchAccount`.
    pub async fn account_file(&self, id: i64) -> Result<AccountFile> {
        let row = accounts::by_id(&mut self.store().read().await?, id).await?;
        let row = row.ok_or(Refusal::NoSuchAccount)?;
        let filter = AuditFilter {
            subject: Some(row.record.email.clone()),
            limit: ENTRIES,
            ..AuditFilter::default()
        };
        let applications = self.applications().of_account(id).await?;
        let mut endpoints = Vec::new();
        for ApplicationRecord { reference, .. } in &applications {
            let found = self.webhooks().of_application(*reference).await?;
            endpoints.extend(found.into_iter().map(|(kind, record)| (*reference, kind, record)));
        }
        Ok(AccountFile {
            created_at: row.created_at,
            disabled_at: row.disabled_at,
            disabled_reason: row.disabled_reason,
            factor_since: self.accounts().factor(id).await?.map(|factor| factor.since),
            devices: self.accounts().devices(id, "").await?.len(),
            applications,
            endpoints,
            notes: self.account_notes(id).await?,
            audit: self.audit(&filter).await?.items,
            account: row.record,
        })
    }

    /// Returns the notes of staff on an account, newest first.
    pub async fn account_notes(&self, account_id: i64) -> Result<Vec<NoteRecord>> {
        let mut conn = self.store().read().await?;
        let mut notes = account_notes::of_account(&mut conn, account_id).await?;
        name_accounts(&mut conn, notes.iter_mut().map(|note| &mut note.author)).await?;
        Ok(notes)
    }

    /// Adds a note to an account. The account's owner doesn't see it. Notes are never changed.
    ///
    /// # Errors
    /// `NoSuchAccount`, `NoteInvalid`.
    pub async fn add_note(&self, actor: &Actor, email: &str, text: &str) -> Result<NoteRecord> {
        let (actor, text) = (*actor, parse_note(text).map_err(Refusal::from)?);
        let found = self.accounts().find_account(email).await?;
        let id = found.ok_or(Refusal::NoSuchAccount)?.id;
        self.in_transaction(work!(|tx, now| {
            let note = account_notes::insert(tx, id, &actor, &text, now).await?;
            let (subject, detail) = (Actor::Account(id).to_string(), note.id.to_string());
            let detail = format!("note {detail}");
            audit::insert(tx, now, &actor, "account.note", &subject, Some(&detail)).await?;
            Ok(note)
        }))
        .await
    }

    /// Returns an application and its owner, for staff. The audit log records the visit, at most
    /// once an hour per staff member and application.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn visit_application(
        &self,
        actor: &Actor,
        reference: Reference,
    ) -> Result<(Owner, ApplicationRecord)> {
        let (service, actor) = (self.0.clone(), *actor);
        self.in_transaction_of(
            reference,
            work!(|tx, now| {
                let row = applications::by_reference(tx, reference).await?;
                let row = row.ok_or(Refusal::NoSuchApplication)?;
                let (action, subject) = ("application.visit", reference.to_string());
                let since = now.plus_ms(-VISIT_MS);
                if !audit::has_since(tx, &actor, action, &subject, since).await? {
                    audit::insert(tx, now, &actor, action, &subject, None).await?;
                }
                let email = row.record.email.clone();
                let owner = Owner { account_id: row.account_id, email, reference };
                Ok((owner, service.applications().shown(row)))
            }),
        )
        .await
    }
}

pub(super) fn line(row: AccountRow) -> AccountLine {
    AccountLine { account: row.record, created_at: row.created_at, disabled_at: row.disabled_at }
}
