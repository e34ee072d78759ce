//! Reroutes messages whose carrier can't take them.

use std::time::Duration;

use async_trait::async_trait;
use service::Result;
use tokio::time::Instant;

use super::work::{Next, Work};
use crate::worker::context::Context;

/// The time after which the messages of an unusable carrier are checked again. Meanwhile, messages
/// may have been queued for it or returned from it.
const ONCE_MORE: Duration = Duration::from_secs(5);
/// How often messages of carriers that aren't in the settings are looked for.
const CHECK_UNKNOWN: Duration = Duration::from_mins(1);
/// The carrier of messages that match no route.
const NO_CARRIER: &str = "";

#[derive(Default)]
pub(super) struct Rerouting {
    /// Carriers whose messages are still to be rerouted. After a failure, the next run continues
    /// with them.
    carriers: Vec<String>,
    once_more_at: Option<Instant>,
    /// When to look for messages of carriers that aren't in the settings.
    check_unknown_at: Option<Instant>,
}

impl Rerouting {
    async fn next(&mut self, context: &Context, woken: bool) -> Result<Vec<String>> {
        let delivery = context.service.delivery();
        let now = Instant::now();
        let once_more = self.once_more_at.is_some_and(|at| at <= now);
        let mut carriers = delivery.carriers_to_check().await?;
        if woken || once_more {
            carriers.extend(delivery.unusable_carriers());
            self.check_unknown_at = Some(now);
            self.once_more_at = woken.then_some(now + ONCE_MORE);
        }
        // Messages may come back from a carrier that was removed.
        if self.check_unknown_at.is_none_or(|at| at <= now) {
            self.check_unknown_at = Some(now + CHECK_UNKNOWN);
            carriers.extend(delivery.unknown_carriers().await?);
        }
        // The last one is the first to be rerouted. Many messages may wait for a route to open.
        carriers.insert(0, NO_CARRIER.to_owned());
        Ok(carriers)
    }
}

#[async_trait]
impl Work for Rerouting {
    async fn run(&mut self, context: &Context, woken: bool) -> Result<Next> {
        if self.carriers.is_empty() {
            self.carriers = self.next(context, woken).await?;
        }
        while let Some(carrier) = self.carriers.last() {
            context.service.delivery().reroute(carrier).await?;
            self.carriers.pop();
        }
        Ok(Next::AfterInterval)
    }
}
