//! Delivers events to endpoints. Each endpoint has its own task, so that a slow one delays no
//! other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use service::{BATCH_MS, LeasedWebhook, Result};

use super::work::{Next, Work};
use crate::webhook::Sender;
use crate::worker::context::Context;

/// The maximum number of endpoints that a process delivers to at once.
const AT_A_TIME: usize = 1000;
/// The maximum number of endpoints that one run leases.
const LEASED_AT_ONCE: usize = 100;
/// The most events that an endpoint gets in a second. Faster deliveries, mostly replays, would take
/// the processor from sends.
const EVENTS_PER_SECOND: u32 = 2500;

pub(super) struct Webhooks {
    sender: Arc<Sender>,
}

impl Webhooks {
    pub(super) fn new(sender: Arc<Sender>) -> Self {
        Self { sender }
    }
}

#[async_trait]
impl Work for Webhooks {
    async fn run(&mut self, context: &Context, _woken: bool) -> Result<Next> {
        let wanted = LEASED_AT_ONCE.min(AT_A_TIME.saturating_sub(context.deliveries.len()));
        if wanted == 0 {
            return Ok(Next::AfterInterval);
        }
        let leased = context.service.webhooks().lease_due(wanted.cast_signed() as i64).await?;
        let all_taken = leased.len() < wanted;
        for endpoint in leased {
            let (context, sender) = (context.clone(), Arc::clone(&self.sender));
            context.deliveries.clone().spawn(async move {
                if let Err(error) = deliver(&context, &sender, &endpoint).await {
                    let id = endpoint.id;
                    tracing::error!(%id, detail = ?error, "deliveries to an endpoint failed");
                }
            });
        }
        Ok(if all_taken { Next::AfterInterval } else { Next::AtOnce })
    }
}

/// Delivers an endpoint's events until there are none left. After a batch that took long, other
/// endpoints have their turn first.
async fn deliver(context: &Context, sender: &Sender, endpoint: &LeasedWebhook) -> Result<()> {
    let webhooks = context.service.webhooks();
    while let Some(batch) = webhooks.next_batch(endpoint).await? {
        let begun = Instant::now();
        let attempts = sender.deliver(&batch, &context.shutdown).await;
        let count = u32::try_from(attempts.len()).unwrap_or(u32::MAX);
        let paced = Duration::from_secs(1) * count / EVENTS_PER_SECOND;
        let rest = tokio::time::sleep(paced.saturating_sub(begun.elapsed()));
        context.shutdown.run_until_cancelled(rest).await;
        if !webhooks.record(endpoint, batch, attempts).await? {
            return Ok(());
        }
        let is_slow = begun.elapsed() >= Duration::from_millis(BATCH_MS.unsigned_abs());
        if is_slow || context.shutdown.is_cancelled() {
            return webhooks.end_lease(endpoint).await;
        }
    }
    Ok(())
}
