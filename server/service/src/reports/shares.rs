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
mod tests {
    use domain::{ApplicationId, KeyKind, Money, Prices, Reference};
    use futures_util::FutureExt as _;

    use super::*;
    use crate::{
        Clock, Config, Entropy, KeyAccess, Limits, MailSettings, MessageFilter, Network, Service,
    };

    async fn service(folder: &std::path::Path) -> Service {
        let money = |text| Money::parse(text).unwrap();
        let config = Config {
            database_url: format!("sqlite:{}", folder.join("heliograph.db").display()),
            prices: Prices::new(money("0.05"), money("0.25")).unwrap(),
            currency: "USD".to_owned(),
            data_dir: folder.to_owned(),
            network: Network::sandbox("266".to_owned(), "Heliograph".to_owned()),
            limits: Limits::default(),
            mail: MailSettings::default(),
            endpoints: crate::EndpointRules::default(),
            opt_outs: crate::OptOutSettings::default(),
            clock: Clock::system(),
            entropy: Entropy::seeded(1),
        };
        Service::open(config).await.unwrap()
    }

    /// Returns access to an application. With one shard, the application needn't exist.
    fn access(id: i64) -> KeyAccess {
        KeyAccess {
            application_id: ApplicationId(id),
            reference: Reference::parse("000001").unwrap(),
            kind: KeyKind::Live,
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn searches_by_keys_and_pages_take_a_share() {
        let folder = tempfile::tempdir().unwrap();
        let service = service(folder.path()).await;
        let filter = MessageFilter { limit: 1, ..MessageFilter::default() };
        // An application may use one of the four connections.
        let searches = &service.inner.searches;
        let _application = searches.take(Searcher::Application(1)).await.unwrap();
        let refused = service.messages().list(&access(1), &filter).await.unwrap_err();
        assert_eq!(refused.reason(), domain::Reason::Unavailable);
        let found = service.messages().list(&access(2), &filter).await.unwrap();
        assert!(found.items.is_empty());
        let _account = searches.take(Searcher::Account(1)).await.unwrap();
        let refused = service.messages().account_messages(1, None, &filter).await;
        assert_eq!(refused.unwrap_err().reason(), domain::Reason::Unavailable);
        service.close().await;
    }

    #[tokio::test]
    async fn who_searches_much_leaves_room_to_others() {
        let shares = SearchShares::new(8);
        let (one, two) = (Searcher::Application(1), Searcher::Account(1));
        let first = shares.take(one).await.unwrap();
        let second = shares.take(one).await.unwrap();
        let mut third = std::pin::pin!(shares.take(one));
        assert!(third.as_mut().now_or_never().is_none());
        let others = [shares.take(two).await.unwrap(), shares.take(two).await.unwrap()];
        // All searches together may use half of the connections.
        assert!(shares.take(Searcher::Application(2)).now_or_never().is_none());
        drop(first);
        assert!(third.await.is_ok());
        drop((second, others));
        assert!(shares.take(one).await.is_ok());
        shares.own(two);
        assert_eq!(shares.own.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn nobody_waits_for_long() {
        let shares = SearchShares::new(4);
        let _first = shares.take(Searcher::Application(1)).await.unwrap();
        let refused = shares.take(Searcher::Application(1)).await.err().unwrap();
        assert_eq!(refused.reason(), domain::Reason::Unavailable);
    }
}
