//! Limits concurrent searches for messages. A search reads for up to a second, on one of the few
//! connections that all other reads use too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use store::error::{Fault, Result};

/// The longest time that a search waits for a permit.
const WAIT_MAX: Duration = Duration::from_secs(3);
/// The searches of one application, or of one account's pages, may use a quarter of the
/// connections. All searches together may use half.
const OWN_PART: usize = 4;
const ALL_PART: usize = 2;

/// The owner of a share of the connections.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Searcher {
    Application(i64),
    Account(i64),
    /// All members of staff together. They search many applications at once.
    Staff,
}

/// The shares of the reading connections that searches may use.
pub(crate) struct SearchShares {
    all: Arc<Semaphore>,
    own_max: usize,
    /// The semaphores of searchers that have or await a permit.
    own: Mutex<HashMap<Searcher, Arc<Semaphore>>>,
}

/// The right to search, until this is dropped.
pub(crate) struct SearchPermit {
    _all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
}

impl SearchShares {
    /// Creates the shares of this many connections.
    pub(crate) fn new(readers: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new((readers / ALL_PART).max(1))),
            own_max: (readers / OWN_PART).max(1),
            own: Mutex::default(),
        }
    }

    /// Waits for a permit of the searcher's own share, and then for a permit of the share that all
    /// searches have in common. A searcher with many searches mostly waits for its own share, so it
    /// has few searches in the common queue.
    pub(crate) async fn take(&self, searcher: Searcher) -> Result<SearchPermit> {
        let own = self.own(searcher);
        let taking = async {
            let own = own.acquire_owned().await?;
            let all = Arc::clone(&self.all).acquire_owned().await?;
            Ok::<_, AcquireError>(SearchPermit { _all: all, _own: own })
        };
        // The semaphores are never closed, so only the timeout fails.
        let taken = tokio::time::timeout(WAIT_MAX, taking).await;
        let permit = taken.ok().and_then(std::result::Result::ok);
        permit.ok_or_else(|| Fault::TimedOut("the wait for other searches").into())
    }

    fn own(&self, searcher: Searcher) -> Arc<Semaphore> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        // Each permit has a clone, and so has each search that waits for one.
        own.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        let new = || Arc::new(Semaphore::new(self.own_max));
        Arc::clone(own.entry(searcher).or_insert_with(new))
    }
}

#[cfg(test)]
mod tests;
