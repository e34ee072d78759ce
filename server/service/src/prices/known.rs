//! The prices that a process knows: all changes that it has read so far. Whoever charges reads in
//! the same transaction which change is the newest, and the others only when that one isn't known
//! yet.

use std::sync::{Arc, Mutex, PoisonError};

use domain::{PriceHistory, PricesInForce, Timestamp};

use crate::error::{Error, Fault, Result};
use crate::store::prices;
use crate::store::query::Connection;

/// Changes of prices, and the prices that were last in force by them.
#[derive(Clone, Default)]
pub(crate) struct CurrentPrices {
    pub(crate) history: Arc<PriceHistory>,
    last: Option<InForce>,
}

/// Prices, from a time on until before another one.
#[derive(Clone)]
struct InForce {
    prices: Arc<PricesInForce>,
    from: Timestamp,
    until: Option<Timestamp>,
}

impl CurrentPrices {
    pub(crate) fn new(history: PriceHistory) -> Self {
        Self {
            history: Arc::new(history),
            last: None,
        }
    }

    /// The prices that are charged while a clock shows `now`; `None` before the first ones.
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

/// What the parts of a process that charge by statements know.
#[derive(Default)]
pub(crate) struct KnownPrices(Mutex<CurrentPrices>);

impl KnownPrices {
    /// The prices in force, and the newest change that they go by.
    pub(crate) async fn read(
        &self,
        conn: &mut dyn Connection,
        now: Timestamp,
    ) -> Result<(i64, Arc<PricesInForce>)> {
        let version = prices::version(conn).await?;
        let found = self.of_version(conn, version, now).await?;
        // An installation has prices from its first start on.
        let found = found.ok_or(Error::Failed(Fault::Missing("prices")))?;
        Ok((version, found))
    }

    /// The prices in force where this change is the newest; `None` before the first ones.
    pub(crate) async fn of_version(
        &self,
        conn: &mut dyn Connection,
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

    /// All changes up to this one at least.
    pub(crate) async fn history(
        &self,
        conn: &mut dyn Connection,
        version: i64,
    ) -> Result<Arc<PriceHistory>> {
        let known = Arc::clone(&self.lock().history);
        if known.version() >= version {
            return Ok(known);
        }
        Ok(self.learn(conn).await?.history)
    }

    async fn learn(&self, conn: &mut dyn Connection) -> Result<CurrentPrices> {
        let read = CurrentPrices::new(prices::history(conn).await?);
        let mut known = self.lock();
        // A reader's snapshot may be older than what is known.
        if known.history.version() < read.history.version() {
            *known = read.clone();
        }
        Ok(read)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, CurrentPrices> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
