//! The last calls of each application, for its owner. Calls are gathered in memory and stored every
//! few seconds, so that no send pays for them; a process that dies loses those since then.
//!
//! However many calls there are, what is in memory is bounded: of each application the last calls
//! that are shown, and fewer of each where many applications have calls.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::records::ApiCallRecord;
use domain::{ApiKey, KeyKind, Reason, Reference, Timestamp};

use crate::Service;
use crate::applications::owned;
use crate::error::Result;
use crate::run_detached;
use crate::store::api_calls;
use crate::store::gate::Priority;

/// How many calls of an application are kept.
const KEPT: usize = 50;
/// How many applications' calls wait to be stored, at most. The more of them have calls, the fewer
/// calls of each wait: so many in all are shared among them.
const WAITING_MAX: usize = 5_000;
/// How many calls wait whose keys aren't in force, at most: most keys of such calls never were.
const DOUBTFUL_MAX: usize = 200;
/// How many applications have their calls stored in one transaction.
const APPLICATIONS_CHUNK: usize = 20;
/// For how long after a key was replaced calls with it are kept.
const REPLACED_MS: i64 = 24 * 3_600_000;

/// A call of the API that was answered.
pub struct ApiCall {
    pub method: &'static str,
    /// The template of its path, never the path itself.
    pub route: &'static str,
    /// The client's address.
    pub from: Option<IpAddr>,
    /// The number that its message is for, masked.
    pub recipient: Option<String>,
    /// Why it was refused.
    pub reason: Option<Reason>,
    /// What was wrong, more exactly than its reason says.
    pub detail: Option<String>,
    /// Whether its key is known to be in force.
    pub is_known: bool,
}

/// The calls that aren't stored yet.
#[derive(Default)]
pub(crate) struct CallLog(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    /// Oldest first.
    calls: BTreeMap<Reference, VecDeque<Noted>>,
    doubtful: Vec<(ApiKey, Noted)>,
}

struct Noted {
    at: Timestamp,
    kind: KeyKind,
    call: ApiCall,
}

impl From<Noted> for ApiCallRecord {
    fn from(Noted { at, kind, call }: Noted) -> Self {
        Self {
            at,
            kind,
            call: format!("{} {}", call.method, call.route),
            from: call.from.map(|from| from.to_string()),
            recipient: call.recipient,
            reason: call.reason,
            detail: call.detail,
        }
    }
}

impl Waiting {
    fn add(&mut self, reference: Reference, call: Noted) {
        let applications = self.calls.len();
        if applications >= WAITING_MAX && !self.calls.contains_key(&reference) {
            return;
        }
        let share = WAITING_MAX / (applications + 1);
        let calls = self.calls.entry(reference).or_default();
        while !calls.is_empty() && calls.len() >= share.min(KEPT) {
            calls.pop_front();
        }
        calls.push_back(call);
    }

    fn add_doubtful(&mut self, key: &ApiKey, call: Noted) {
        if self.doubtful.len() < DOUBTFUL_MAX {
            self.doubtful.push((key.clone(), call));
        }
    }
}

impl CallLog {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service {
    /// Notes a call that was answered.
    pub fn note_call(&self, key: &ApiKey, call: ApiCall) {
        let (at, kind, is_known) = (self.now(), key.kind(), call.is_known);
        let noted = Noted { at, kind, call };
        let mut waiting = self.inner.call_log.lock();
        if is_known {
            waiting.add(key.reference(), noted);
        } else {
            waiting.add_doubtful(key, noted);
        }
    }

    /// Stores what was noted since the last time. Of calls whose keys aren't known to be in force
    /// those are stored whose keys are, or were replaced within a day.
    ///
    /// # Errors
    /// `Failed` or `Uncertain` when the database can't be read or written: the notes since the last
    /// time are lost then, since they may be stored already.
    pub async fn store_calls(&self) -> Result<()> {
        let waiting = std::mem::take(&mut *self.inner.call_log.lock());
        self.store_of(waiting.calls).await?;
        let mut owners = Waiting::default();
        for (key, call) in waiting.doubtful {
            if self.is_owners(&key).await? {
                owners.add(key.reference(), call);
            }
        }
        self.store_of(owners.calls).await
    }

    async fn store_of(&self, calls: BTreeMap<Reference, VecDeque<Noted>>) -> Result<()> {
        let mut calls = calls.into_iter().peekable();
        while calls.peek().is_some() {
            let chunk: Vec<_> = calls.by_ref().take(APPLICATIONS_CHUNK).collect();
            self.store_some(chunk).await?;
        }
        Ok(())
    }

    async fn store_some(&self, chunk: Vec<(Reference, VecDeque<Noted>)>) -> Result<()> {
        let service = self.clone();
        run_detached(async move {
            let mut tx = service.store().begin_as(Priority::Bulk).await?;
            for (reference, calls) in chunk {
                let calls: Vec<_> = calls.into_iter().map(ApiCallRecord::from).collect();
                api_calls::insert(&mut tx, reference, &calls, KEPT).await?;
            }
            tx.commit().await
        })
        .await
    }

    /// Whether a key is in force, or was until a day ago.
    async fn is_owners(&self, key: &ApiKey) -> Result<bool> {
        let since = replaced_since(self.now());
        let mut conn = self.store().read().await?;
        let was_replaced = api_calls::was_replaced(&mut conn, &key.hash(), since).await?;
        drop(conn);
        Ok(was_replaced || self.key_in_force(key).await?)
    }

    /// The last calls of one of an account's applications, newest first.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn api_calls(
        &self,
        account_id: i64,
        reference: Reference,
    ) -> Result<Vec<ApiCallRecord>> {
        let shard = self.shard_of(reference).await?;
        let mut conn = self.store().read_at(shard).await?;
        owned(&mut conn, account_id, reference).await?;
        drop(conn);
        let mut conn = self.store().read().await?;
        api_calls::of_application(&mut conn, reference, KEPT).await
    }
}

/// Keys that were replaced before this time are forgotten.
pub(crate) fn replaced_since(now: Timestamp) -> Timestamp {
    now.plus_ms(-REPLACED_MS)
}
