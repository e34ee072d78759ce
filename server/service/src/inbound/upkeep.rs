//! Deletes old inbound messages and notes of deliveries.

use domain::timestamp::DAY_MS;

use crate::Operations;
use crate::reports::first_id;
use crate::transactions::work;
use store::error::Result;
use store::gate::Priority;
use store::{Chore, inbound};

/// The maximum number of rows of a kind that one transaction deletes.
const CHUNK: i64 = 2000;

impl Operations<'_> {
    /// Deletes inbound messages that are older than the setting `history_days`, and notes of
    /// deliveries that no carrier repeats any more.
    pub async fn forget_inbound(&self) -> Result<()> {
        let days = self.limits().history_days;
        self.do_chore(
            Chore::ForgetInbound,
            Priority::Bulk,
            work!(|tx, now| {
                let below = first_id(now.plus_ms(-days * DAY_MS));
                let more = inbound::drop_old(tx, below, CHUNK).await?;
                Ok(more | inbound::forget_seen(tx, now, CHUNK).await?)
            }),
        )
        .await
    }
}
