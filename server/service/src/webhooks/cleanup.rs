//! Deletes old events, old attempts, and what is left of removed endpoints.

use domain::timestamp::DAY_MS;

use crate::Webhooks;
use crate::operations::history::TEST_HISTORY_DAYS;
use crate::reports::first_id;
use crate::transactions::work;
use store::error::Result;
use store::gate::Priority;
use store::{Chore, events, webhooks};

/// The most rows of a kind that one transaction deletes.
const CHUNK: i64 = 1000;
/// The least number of days that attempts are kept. An event is attempted for more than two days,
/// and an endpoint that is enabled again gets the events of the last three days.
const ATTEMPT_DAYS_MIN: i64 = 4;

impl Webhooks<'_> {
    /// Deletes what is older than the setting `event_days`, and removed endpoints. An event is kept
    /// no longer than its message. Attempts are kept no longer than texts, because an answer may
    /// quote a text.
    pub async fn forget_events(&self) -> Result<()> {
        let limits = self.limits();
        let live_days = limits.event_days.min(limits.history_days);
        let test_days = live_days.min(TEST_HISTORY_DAYS);
        let attempt_days = limits.days_with_text(live_days).max(ATTEMPT_DAYS_MIN);
        self.do_chore(
            Chore::ForgetEvents,
            Priority::Bulk,
            work!(|tx, now| {
                let below = |days: i64| first_id(now.plus_ms(-days * DAY_MS));
                Ok(events::drop_old(tx, false, below(live_days), CHUNK).await?
                    | events::drop_old(tx, true, below(test_days), CHUNK).await?
                    | webhooks::drop_old_attempts(tx, below(attempt_days), CHUNK).await?
                    | webhooks::drop_removed(tx, CHUNK).await?)
            }),
        )
        .await
    }
}
