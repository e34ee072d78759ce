//! The latest API calls of each application, for its owner. Calls are collected in memory and
//! stored every few seconds, so that they don't slow down sends. A process that dies loses the
//! calls since the last store.
//!
//! The memory is bounded. It holds no more calls per application than are shown, and fewer when
//! many applications make calls.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::records::ApiCallRecord;
use domain::{ApiKey, KeyKind, Reason, Reference, Timestamp};

use crate::Applications;
use crate::applications::owned;
use crate::run_detached;
use store::api_calls;
use store::error::Result;
use store::gate::Priority;

/// The number of calls that are kept per application.
const KEPT: usize = 50;
/// The maximum number of applications with pending calls. The pending calls of all applications
/// together are limited to about the same number. Each application gets an equal share of them.
const WAITING_MAX: usize = 5_000;
/// The maximum number of pending calls whose keys aren't known to be in force. Most of those keys
/// were never valid.
const DOUBTFUL_MAX: usize = 200;
/// The number of applications whose calls one transaction stores.
const APPLICATIONS_CHUNK: usize = 20;
/// How long calls with a key are still stored after its replacement, in milliseconds.
const REPLACED_MS: i64 = 24 * 3_600_000;

/// An API call that was answered.
pub struct ApiCall {
    pub method: &'static str,
    /// The template of the call's path, never the path itself.
    pub route: &'static str,
    /// The client's address.
    pub from: Option<IpAddr>,
    /// The recipient's number, masked.
    pub recipient: Option<String>,
    pub reason: Option<Reason>,
    /// The cause of the refusal, in more detail than the reason.
    pub detail: Option<String>,
    /// Whether the key is known to be in force.
    pub is_known: bool,
}

/// The calls that aren't stored yet.
#[derive(Default)]
pub(crate) struct CallLog(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    /// The calls of each application, oldest first.
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

impl Applications<'_> {
    /// Adds an answered call to the log in memory.
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

    /// Stores the calls that were added since the last time. A call whose key isn't known to be in
    /// force is stored only if the key turns out to be in force, or was replaced within the last
    /// day.
    ///
    /// # Errors
    /// `Failed` or `Uncertain` if the database can't be read or written. The calls are then lost:
    /// they can't be stored again, because they may have been stored already.
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
        let service = self.0.clone();
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

    /// Whether a key is in force, or was until at most a day ago.
    async fn is_owners(&self, key: &ApiKey) -> Result<bool> {
        let since = replaced_since(self.now());
        let mut conn = self.store().read().await?;
        let was_replaced = api_calls::was_replaced(&mut conn, &key.hash(), since).await?;
        drop(conn);
        Ok(was_replaced || self.key_in_force(key).await?)
    }

    /// Returns the latest calls of one of an account's applications, newest first.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn api_calls(
        &self,
        account_id: i64,
        reference: Reference,
    ) -> Result<Vec<ApiCallRecord>> {
        let mut conn = self.read_of(reference).await?;
        owned(&mut conn, account_id, reference).await?;
        drop(conn);
        api_calls::of_application(&mut self.store().read().await?, reference, KEPT).await
    }
}

/// Returns the time before which replaced keys are forgotten.
pub(crate) fn replaced_since(now: Timestamp) -> Timestamp {
    now.plus_ms(-REPLACED_MS)
}
