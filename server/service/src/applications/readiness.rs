//! Everything that keeps an application from sending now.

use domain::readiness::{Blocker, SpendCap, blockers};
use domain::records::ApplicationRecord;
use domain::{Money, Reference};

use crate::{Applications, zones};
use store::error::Result;

impl Applications<'_> {
    /// Returns everything that keeps an application from sending now.
    pub async fn blockers(&self, application: &ApplicationRecord) -> Result<Vec<Blocker>> {
        let local_price = self.0.money().local_price().await?;
        let has_carrier = self.0.delivery().has_carrier_for_messages().await?;
        let spend_cap = self.spend_cap(application.reference, local_price).await?;
        Ok(blockers(application, local_price, has_carrier, spend_cap))
    }

    /// Returns the limit on the day's spend if it refuses `cost` now.
    pub async fn spend_cap(&self, reference: Reference, cost: Money) -> Result<Option<SpendCap>> {
        let Some(row) = self.0.messages().key_row(reference).await? else {
            return Ok(None);
        };
        let (limits, now) = (row.limits(), self.now());
        let zone = limits.zone.as_deref();
        let spent = row.spent_on(zones::day(zone, now));
        let until = now.plus_ms(zones::ms_until_tomorrow(zone, now));
        let max = limits.spend_per_day.filter(|_| !limits.admits_spend(spent, cost));
        Ok(max.map(|max| SpendCap { max, until }))
    }
}
