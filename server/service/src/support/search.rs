//! The search of the support pages. It searches for a text as each kind of value that the text can
//! be.

use std::time::Instant;

use domain::ids::{Shard, compose_id};
use domain::support::{Found, MaskedMessage, Owner};
use domain::{BatchId, Number, Reference, RequestId, Transid};

use super::accounts::line;
use crate::Support;
use crate::reports::shares::Searcher;
use crate::reports::{self, MessageFilter};
use store::error::Result;
use store::recent::{self, Key};
use store::{accounts, applications, batches, deposits, messages};

/// The maximum number of accounts, of deposits, of messages, and of each shard's applications in a
/// search result.
const FOUND_MAX: i64 = 20;
/// How far back the search by number or `requestid` goes when it covers all applications.
const RECENT_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// The number of applications that one query covers.
const APPLICATIONS_AT_ONCE: i64 = 500;
/// The maximum length of a search text. Nothing that can be found is longer.
const TEXT_CHARS_MAX: usize = 600;

/// The account or application in which a number or `requestid` is searched.
#[derive(Clone, Copy)]
struct Within {
    account_id: i64,
    reference: Option<Reference>,
}

impl Support<'_> {
    /// Searches for a text as:
    /// - a part of an account's email
    /// - a part of an application's reference, name or sender name
    /// - a message's `transid`
    /// - a batch's `batchid`
    /// - a part of a deposit's bank ID, reference, payer or purpose
    /// - the number or `requestid` of messages of the last 7 days
    ///
    /// If the text begins with an email or a reference and a space, the search covers only the
    /// messages of that account or application. It finds them by number or `requestid`, whatever
    /// their age.
    ///
    /// # Errors
    /// `Failed` if the database can't be read, or if too many searches are running. In the second
    /// case, retry later.
    pub async fn desk_search(&self, text: &str) -> Result<Found> {
        let text = text.trim();
        let mut found = Found::default();
        if text.is_empty() || text.contains('\0') || text.chars().count() > TEXT_CHARS_MAX {
            return Ok(found);
        }
        if let Some((location, rest)) = text.split_once(char::is_whitespace)
            && let Some(within) = self.within(location).await?
        {
            self.find_within(within, rest.trim(), &mut found).await?;
            return Ok(found);
        }
        let part = text.to_lowercase();
        self.find_accounts(&part, &mut found).await?;
        self.find_deposits(&part, &mut found).await?;
        self.find_applications(&part, &mut found).await?;
        if let Some(transid) = Transid::parse(text) {
            self.find_message(transid, &mut found).await?;
        } else if let Some(batchid) = BatchId::parse(text) {
            self.find_batch(batchid, &mut found).await?;
        } else {
            self.find_recent(text, &mut found).await?;
        }
        Ok(found)
    }

    /// Returns the account or application that a text names.
    async fn within(&self, text: &str) -> Result<Option<Within>> {
        if let Ok(reference) = Reference::parse(text) {
            let row = self.applications().application_row(reference).await?;
            return Ok(
                row.map(|row| Within { account_id: row.account_id, reference: Some(reference) })
            );
        }
        let account = self.accounts().find_account(text).await?;
        Ok(account.map(|account| Within { account_id: account.id, reference: None }))
    }

    /// Finds messages of any age in an account or application, by number or `requestid`.
    async fn find_within(&self, within: Within, text: &str, found: &mut Found) -> Result<()> {
        let filter = MessageFilter { limit: FOUND_MAX, ..MessageFilter::default() };
        let by_number = Number::parse_typed(text)
            .ok()
            .map(|number| MessageFilter { number: Some(number), ..filter.clone() });
        let by_requestid = RequestId::parse(text)
            .ok()
            .map(|_| MessageFilter { requestid: Some(text.to_owned()), ..filter });
        let shard = self.shard_of_account(within.account_id).await?;
        for filter in [by_number, by_requestid].into_iter().flatten() {
            let messages = self.messages();
            let listing = messages.account_messages(within.account_id, within.reference, &filter);
            for message in listing.await?.items {
                self.add_message(shard, message.transid, found).await?;
            }
        }
        sort(found);
        Ok(())
    }

    async fn find_accounts(&self, part: &str, found: &mut Found) -> Result<()> {
        let mut conn = self.store().read().await?;
        let rows = accounts::with_part(&mut conn, part, "", FOUND_MAX).await?;
        found.accounts = rows.into_iter().map(line).collect();
        Ok(())
    }

    async fn find_applications(&self, part: &str, found: &mut Found) -> Result<()> {
        let rows = self.in_each_shard(|shard| async move {
            let mut conn = self.store().read_at(shard).await?;
            applications::with_part(&mut conn, part, FOUND_MAX).await
        });
        for row in rows.await?.into_iter().flatten() {
            let (email, reference) = (row.record.email.clone(), row.record.reference);
            let owner = Owner { account_id: row.account_id, email, reference };
            found.applications.push((owner, self.applications().shown(row)));
        }
        Ok(())
    }

    async fn find_deposits(&self, part: &str, found: &mut Found) -> Result<()> {
        let mut conn = self.store().read().await?;
        found.deposits = deposits::with_part(&mut conn, part, FOUND_MAX).await?;
        Ok(())
    }

    async fn find_message(&self, transid: Transid, found: &mut Found) -> Result<()> {
        for shard in self.shards() {
            self.add_message(shard, transid, found).await?;
        }
        Ok(())
    }

    async fn find_batch(&self, id: BatchId, found: &mut Found) -> Result<()> {
        let batch = self.in_each_shard(|shard| async move {
            let mut conn = self.store().read_at(shard).await?;
            let Some((application, test)) = batches::application_of(&mut conn, id).await? else {
                return Ok(None);
            };
            let owner = applications::owner(&mut conn, application).await?;
            let batch = batches::one(&mut conn, application, test, id).await?;
            Ok(batch.map(|batch| (owner, batch)))
        });
        found.batches = batch.await?.into_iter().flatten().collect();
        Ok(())
    }

    /// Finds messages of the last 7 days by number or `requestid`. Searches one group of
    /// applications after the other, and stops at the time limit of a report.
    async fn find_recent(&self, text: &str, found: &mut Found) -> Result<()> {
        let number = Number::parse_typed(text).ok();
        let forms = number.map(|number| number.forms(self.country_code())).unwrap_or_default();
        let numbers = forms.iter().map(|number| Key::Number(number.digits()));
        let requestid = RequestId::parse(text).ok().map(|_| Key::Requestid(text));
        let _permit = self.inner.searches.take(Searcher::Staff).await?;
        let end = Instant::now() + self.limits().report_time;
        for key in numbers.chain(requestid) {
            for shard in self.shards() {
                self.find_recent_at(shard, key, end, found).await?;
            }
        }
        sort(found);
        Ok(())
    }

    async fn find_recent_at(
        &self,
        shard: Shard,
        key: Key<'_>,
        end: Instant,
        found: &mut Found,
    ) -> Result<()> {
        let from = compose_id(self.now().plus_ms(-RECENT_MS).unix_ms(), 0);
        let mut conn = self.store().read_at(shard).await?;
        let mut after = 0;
        let mut locations = Vec::new();
        while let Some(last) = recent::last_of_next(&mut conn, after, APPLICATIONS_AT_ONCE).await? {
            if Instant::now() >= end {
                found.incomplete = true;
                break;
            }
            let span = (after, last);
            locations.extend(recent::find(&mut conn, key, span, from, FOUND_MAX).await?);
            after = last;
        }
        drop(conn);
        locations.sort_unstable_by_key(|location| std::cmp::Reverse(location.transid));
        locations.truncate(usize::try_from(FOUND_MAX).unwrap_or(usize::MAX));
        for location in locations {
            self.add_message(shard, location.transid, found).await?;
        }
        Ok(())
    }

    /// Adds a message of this shard, unless it was already found.
    async fn add_message(&self, shard: Shard, transid: Transid, found: &mut Found) -> Result<()> {
        let known = |(_, message): &(Owner, MaskedMessage)| message.transid == transid;
        if found.messages.iter().any(known) {
            return Ok(());
        }
        let mut conn = self.store().read_at(shard).await?;
        let Some(location) = messages::locate(&mut conn, transid).await? else {
            return Ok(());
        };
        if let Some(row) = reports::row_at(&mut conn, location).await? {
            let owner = applications::owner(&mut conn, location.application_id).await?;
            found.messages.push((owner, row.record.into()));
        }
        Ok(())
    }
}

/// Sorts the messages, newest first, and drops those beyond the maximum.
fn sort(found: &mut Found) {
    let newest = |(_, message): &(Owner, MaskedMessage)| std::cmp::Reverse(message.transid);
    found.messages.sort_unstable_by_key(newest);
    let most = usize::try_from(FOUND_MAX).unwrap_or(usize::MAX);
    found.messages.truncate(most);
}
