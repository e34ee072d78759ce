//! What carriers report of messages they took.

use std::collections::HashSet;

use domain::{MessageStatus, Transid};

use crate::error::Result;
use crate::store::gate::Priority;
use crate::store::messages::{self, Ending};
use crate::store::queue::{self, Event};
use crate::{Service, whole};

/// A delivery receipt: how a message ended.
#[derive(Clone, Debug)]
pub struct Receipt {
    pub id: Transid,
    pub application_id: i64,
    /// A final status.
    pub status: MessageStatus,
    /// Why it wasn't delivered, in a stable word.
    pub error: Option<String>,
}

impl Service {
    /// Makes messages final by their receipts; durable when this returns. The charge stays whatever the
    /// receipt says. A receipt for a message that is final already goes into its timeline.
    pub async fn record_receipts(&self, receipts: Vec<Receipt>) -> Result<()> {
        let service = self.clone();
        whole(async move {
            let now = service.now();
            let batch = service.store().dialect().batch();
            let endings: Vec<_> = receipts
                .iter()
                .map(|r| Ending {
                    id: r.id,
                    status: r.status,
                    error: r.error.clone(),
                    release: false,
                })
                .collect();
            let mut tx = service.store().begin_as(Priority::Results).await?;
            let ended = messages::finish(&mut tx, batch, &endings, now).await?;
            // One that comes before the submit is recorded, or after its lease was lost, ends the waiting too.
            let gone: Vec<i64> = ended.iter().map(|ended| ended.id.0).collect();
            queue::drop_all(&mut tx, batch, &gone).await?;
            let ended: HashSet<Transid> = ended.into_iter().map(|ended| ended.id).collect();
            let late: Vec<_> = receipts
                .into_iter()
                .filter(|receipt| !ended.contains(&receipt.id))
                .map(|r| Event {
                    id: r.id,
                    application_id: r.application_id,
                    status: r.status,
                    detail: Some(format!(
                        "late receipt: {}",
                        r.error.as_deref().unwrap_or("no error")
                    )),
                })
                .collect();
            queue::insert_events(&mut tx, batch, &late, now).await?;
            Ok(tx.commit().await?)
        })
        .await
    }
}
