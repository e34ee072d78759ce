//! Scheduled messages in the order of their times.

use domain::records::{MessageRecord, Paged};
use domain::{KeyKind, Reference, Timestamp, Transid};

use super::{LIMIT_MAX, tests};
use crate::applications::owned_ids;
use crate::delivery::expiry::least_queued;
use crate::reports::shares::Searcher;
use crate::{MESSAGE_LIFETIME_MS, Messages};
use store::error::{Refusal, Result};
use store::reports::{self, MessageRow};

/// Separates the two parts of a cursor.
const SEPARATOR: char = '-';

impl Messages<'_> {
    /// Returns a page of the scheduled messages of one of an account's applications, or of all of
    /// them, the next due first. The rows of scheduled batches aren't messages yet.
    ///
    /// # Errors
    /// `NoSuchApplication`, `InvalidCursor`. `Failed` if too many searches are running. The caller
    /// can retry later.
    pub async fn account_scheduled(
        &self,
        account_id: i64,
        reference: Option<Reference>,
        key: Option<KeyKind>,
        (limit, cursor): (i64, Option<&str>),
    ) -> Result<Paged<MessageRecord>> {
        let _permit = self.inner.searches.take(Searcher::Account(account_id)).await?;
        let limit = limit.clamp(1, LIMIT_MAX);
        let now = self.now();
        let after = match cursor {
            Some(text) => parse(text).ok_or(Refusal::InvalidCursor)?,
            // Messages that were due earlier have expired.
            None => (now.plus_ms(-MESSAGE_LIFETIME_MS), Transid(0)),
        };
        let mut conn = self.read_of_account(account_id).await?;
        let (mut found, least) = (Vec::new(), least_queued(now));
        for id in owned_ids(&mut conn, account_id, reference).await? {
            for test in tests(key) {
                let of = (id, test);
                found.extend(reports::scheduled(&mut conn, of, after, least, limit + 1).await?);
            }
        }
        Ok(page(found, limit))
    }
}

/// Returns a page of the first of these messages.
fn page(mut found: Vec<MessageRow>, limit: i64) -> Paged<MessageRecord> {
    let place = |record: &MessageRecord| (record.send_at, record.transid);
    found.sort_unstable_by_key(|row| place(&row.record));
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let is_last = found.len() <= limit;
    found.truncate(limit);
    let items: Vec<MessageRecord> = found.into_iter().map(|row| row.record).collect();
    let last = items.last().filter(|_| !is_last);
    let next = last
        .and_then(|last| Some(format!("{}{SEPARATOR}{}", last.send_at?.unix_ms(), last.transid)));
    Paged { items, next }
}

/// Reads a cursor: the time in Unix milliseconds and the ID of the last message of the page before.
fn parse(cursor: &str) -> Option<(Timestamp, Transid)> {
    let (at, id) = cursor.split_once(SEPARATOR)?;
    Some((Timestamp::from_unix_ms(at.parse().ok()?), Transid::parse(id)?))
}
