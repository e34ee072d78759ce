//! The cache of prices. It holds all price changes that this process has read so far. A transaction
//! that charges reads only the ID of the newest change, and reloads the cache if that ID is new.

use std::sync::{Arc, Mutex, PoisonError};

use domain::{PriceHistory, PricesInForce, Timestamp};

use store::error::{Error, Fault, Result};
use store::prices;
use store::query::Conn;

/// The price changes that were read, and the prices that were returned last.
#[derive(Clone, Default)]
pub(crate) struct CurrentPrices {
    pub(crate) history: Arc<PriceHistory>,
    last: Option<InForce>,
}

/// Prices that are in force from one time until another.
#[derive(Clone)]
struct InForce {
    prices: Arc<PricesInForce>,
    from: Timestamp,
    until: Option<Timestamp>,
}

impl CurrentPrices {
    pub(crate) fn new(history: PriceHistory) -> Self {
        Self { history: Arc::new(history), last: None }
    }

    /// Returns the prices that are charged while a clock shows `now`. Returns `None` before the
    /// first prices.
    pub(crate) fn at(&mut self, now: Timestamp) -> Option<Arc<PricesInForce>> {
        let time = self.history.time(now);
        let holds =
            |last: &&InForce| last.from <= time && last.until.is_none_or(|until| time < until);
        if let Some(last) = self.last.as_ref().filter(holds) {
            return Some(Arc::clone(&last.prices));
        }
        let prices = Arc::new(self.history.at(time)?);
        self.last = Some(InForce {
            prices: Arc::clone(&prices),
            from: time,
            until: self.history.next_change(time),
        });
        Some(prices)
    }
}

/// The price changes that this process has cached. Optimistic commit groups have a cache of their
/// own.
#[derive(Default)]
pub(crate) struct KnownPrices(Mutex<CurrentPrices>);

impl KnownPrices {
    /// Returns the ID of the newest price change, and the prices in force.
    pub(crate) async fn read(
        &self,
        conn: Conn<'_>,
        now: Timestamp,
    ) -> Result<(i64, Arc<PricesInForce>)> {
        let version = prices::version(conn).await?;
        let found = self.of_version(conn, version, now).await?;
        // An installation has prices since its first start.
        let found = found.ok_or(Error::Failed(Fault::Missing("prices")))?;
        Ok((version, found))
    }

    /// Returns the prices in force. `version` is the ID of the newest price change. Returns `None`
    /// before the first prices.
    pub(crate) async fn of_version(
        &self,
        conn: Conn<'_>,
        version: i64,
        now: Timestamp,
    ) -> Result<Option<Arc<PricesInForce>>> {
        let known = {
            let mut known = self.lock();
            let is_known = known.history.version() == version;
            is_known.then(|| known.at(now)).flatten()
        };
        Ok(match known {
            Some(prices) => Some(prices),
            None => self.learn(conn).await?.at(now),
        })
    }

    /// Returns all price changes up to `version`, and possibly later ones.
    pub(crate) async fn history(&self, conn: Conn<'_>, version: i64) -> Result<Arc<PriceHistory>> {
        let known = Arc::clone(&self.lock().history);
        if known.version() >= version {
            return Ok(known);
        }
        Ok(self.learn(conn).await?.history)
    }

    async fn learn(&self, conn: Conn<'_>) -> Result<CurrentPrices> {
        let read = CurrentPrices::new(prices::history(conn).await?);
        let mut known = self.lock();
        // A reader's snapshot may be older than the cache.
        if known.history.version() < read.history.version() {
            *known = read.clone();
        }
        Ok(read)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, CurrentPrices> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
