//! The end of the 48 hours.

use domain::{MessageStatus, ids};

use crate::error::Result;
use crate::settlement::settle;
use crate::store::messages::{self, Ending};
use crate::store::{installation, queue};
use crate::{MESSAGE_LIFETIME_MS, Service, whole};

/// Messages that one transaction makes final.
const CHUNK: i64 = 500;

impl Service {
    /// Makes every message final whose time ran out; how many. What never reached a carrier is given back.
    pub async fn expire(&self) -> Result<u64> {
        let mut expired = 0;
        loop {
            let (count, more) = self.expire_chunk().await?;
            expired += count;
            if !more {
                return Ok(expired);
            }
        }
    }

    /// How many became final, and whether there may be more.
    async fn expire_chunk(&self) -> Result<(u64, bool)> {
        let service = self.clone();
        whole(async move {
            let now = service.now();
            let batch = service.store().dialect().batch();
            let below = ids::compose_id(now.plus_ms(-MESSAGE_LIFETIME_MS).unix_ms(), 0);
            let mut tx = service.store().begin().await?;
            let low = installation::sweep_low(&mut tx).await?;
            let overdue = queue::overdue(&mut tx, low, below, CHUNK).await?;
            let more = i64::try_from(overdue.len()).unwrap_or(CHUNK) == CHUNK;
            let mut endings = Vec::with_capacity(overdue.len());
            let mut waiting = None;
            for (id, status) in overdue {
                // A submit under way decides itself within its lease.
                if queue::leased(&mut tx, id, now).await? {
                    waiting = waiting.or(Some(id.0));
                } else {
                    endings.push(ending(id, status));
                }
            }
            let gone: Vec<i64> = endings.iter().map(|ending| ending.id.0).collect();
            let ended = messages::finish(&mut tx, batch, &endings, now).await?;
            queue::drop_all(&mut tx, batch, &gone).await?;
            settle(&mut tx, batch, &ended, now).await?;
            let last = gone.last().map_or(low, |id| id + 1);
            let swept = if more { last } else { below };
            installation::set_sweep_low(&mut tx, waiting.unwrap_or(swept).min(swept)).await?;
            tx.commit().await?;
            let count = u64::try_from(ended.len()).unwrap_or(u64::MAX);
            Ok((count, more && waiting.is_none()))
        })
        .await
    }
}

/// How a message ends whose time ran out.
fn ending(id: domain::Transid, status: MessageStatus) -> Ending {
    let (error, release) = match status {
        MessageStatus::Submitted => ("no_receipt", false),
        MessageStatus::Unknown => ("no_answer", false),
        _ => ("expired_in_queue", true),
    };
    Ending {
        id,
        status: MessageStatus::Expired,
        error: Some(error.to_owned()),
        release,
    }
}
