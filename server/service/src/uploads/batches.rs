//! Lists uploads, and counts messages by day.

use std::collections::BTreeMap;

use domain::records::{BatchRecord, DayCounts, Paged, StatusCounts};
use domain::{ApplicationId, BatchId, EventStream, KeyKind, Reference, Timestamp, ids};

use crate::Messages;
use crate::admission::KeyAccess;
use crate::applications::{chosen, owned_ids};
use crate::reports::tests;
use store::error::{Refusal, Result};
use store::query::Conn;
use store::{batches, installation, tally};

/// The most uploads on a page.
const LIMIT_MAX: i64 = 1000;

/// Selects the uploads of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchFilter {
    pub requestid: Option<String>,
    /// Only uploads with this kind of key, for callers who may see both kinds.
    pub key: Option<KeyKind>,
    /// Only uploads whose time hasn't come yet.
    pub scheduled: bool,
    /// The most uploads on the page, 1 to 1,000.
    pub limit: i64,
    /// The `next` of an earlier page.
    pub cursor: Option<String>,
}

impl Messages<'_> {
    /// Returns a page of the uploads that a key may see, newest first.
    ///
    /// # Errors
    /// `InvalidCursor`.
    pub async fn batches(
        &self,
        access: &KeyAccess,
        filter: &BatchFilter,
    ) -> Result<Paged<BatchRecord>> {
        let mut conn = self.read_of(access.reference).await?;
        let test = access.kind == KeyKind::Test;
        let found = list(&mut conn, access.application_id, test, filter).await?;
        Ok(paged(found, filter))
    }

    /// Returns an upload that a key may see.
    pub async fn batch(&self, access: &KeyAccess, id: BatchId) -> Result<Option<BatchRecord>> {
        let mut conn = self.read_of(access.reference).await?;
        let test = access.kind == KeyKind::Test;
        batches::one(&mut conn, access.application_id, test, id).await
    }

    /// Returns a page of the uploads of one of an account's applications, or of all of them,
    /// including test uploads.
    ///
    /// # Errors
    /// `NoSuchApplication`, `InvalidCursor`.
    pub async fn account_batches(
        &self,
        account_id: i64,
        reference: Option<Reference>,
        filter: &BatchFilter,
    ) -> Result<Paged<BatchRecord>> {
        let mut conn = self.read_of_account(account_id).await?;
        let mut found = Vec::new();
        for id in owned_ids(&mut conn, account_id, reference).await? {
            for test in tests(filter.key) {
                found.extend(list(&mut conn, id, test, filter).await?);
            }
        }
        Ok(paged(found, filter))
    }

    /// Returns an upload of an account, and its application.
    pub async fn account_batch(
        &self,
        account_id: i64,
        id: BatchId,
    ) -> Result<Option<(Reference, BatchRecord)>> {
        let mut conn = self.read_of_account(account_id).await?;
        for owned in chosen(&mut conn, account_id, None).await? {
            for test in tests(None) {
                if let Some(found) = batches::one(&mut conn, owned.id, test, id).await? {
                    return Ok(Some((owned.reference, found)));
                }
            }
        }
        Ok(None)
    }

    /// Counts messages by status and by the day of their acceptance, for one of an account's
    /// applications or all of them, and for one kind of key or both. Days are counted since
    /// 1970-01-01 UTC, and both bounds are included. Days without messages are left out.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn account_days(
        &self,
        account_id: i64,
        reference: Option<Reference>,
        key: Option<KeyKind>,
        (first, last): (i64, i64),
    ) -> Result<Vec<DayCounts>> {
        let mut conn = self.read_of_account(account_id).await?;
        let mut days: BTreeMap<i64, StatusCounts> = BTreeMap::new();
        for id in owned_ids(&mut conn, account_id, reference).await? {
            for test in tests(key) {
                for found in tally::days(&mut conn, id, test, first, last).await? {
                    days.entry(found.day).or_default().add(&found.counts);
                }
            }
        }
        let days = days.into_iter();
        Ok(days.map(|(day, counts)| DayCounts { day, counts }).collect())
    }

    /// Counts by status all messages that a report can list, for days as in [`Self::account_days`].
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn account_totals(
        &self,
        account_id: i64,
        reference: Option<Reference>,
        key: Option<KeyKind>,
        (first, last): (i64, i64),
    ) -> Result<StatusCounts> {
        let mut conn = self.read_of_account(account_id).await?;
        // Counts of dropped days still exist, so leave those days out.
        let low = installation::history_low(&mut conn).await?;
        let first = first.max(Timestamp::from_unix_ms(ids::id_unix_ms(low)).day());
        let mut totals = StatusCounts::default();
        for id in owned_ids(&mut conn, account_id, reference).await? {
            for test in tests(key) {
                totals.add(&tally::totals(&mut conn, id, test, (first, last)).await?);
            }
        }
        Ok(totals)
    }
}

/// Returns the batches that the filter selects, and one more if there are more.
async fn list(
    conn: Conn<'_>,
    application_id: ApplicationId,
    test: bool,
    filter: &BatchFilter,
) -> Result<Vec<BatchRecord>> {
    let below = match &filter.cursor {
        Some(cursor) => BatchId::parse(cursor).ok_or(Refusal::InvalidCursor)?.0,
        None => i64::MAX,
    };
    let requestid = filter.requestid.as_deref();
    let limit = limit(filter) + 1;
    if filter.scheduled {
        let stream = EventStream { application_id, test };
        return batches::list_scheduled(conn, stream, below, requestid, limit).await;
    }
    batches::list(conn, application_id, test, below, requestid, limit).await
}

fn limit(filter: &BatchFilter) -> i64 {
    filter.limit.clamp(1, LIMIT_MAX)
}

fn paged(mut items: Vec<BatchRecord>, filter: &BatchFilter) -> Paged<BatchRecord> {
    items.sort_unstable_by_key(|batch| std::cmp::Reverse(batch.batchid));
    Paged::of(items, limit(filter), |batch| batch.batchid.to_string())
}
