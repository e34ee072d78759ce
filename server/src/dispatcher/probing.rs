//! Finds out whether a carrier that left messages unanswered answers again.
//!
//! Its connections take one message at a time by themselves, and the others go another way. What
//! waits for it, because no other way is for it, is the probe. Where nothing does, one new message
//! is let through now and then: a bind, and answers to questions whether it is there, prove
//! nothing.

use std::time::Duration;

use service::Service;
use tokio::time::Instant;

/// How often a message is risked: it may be lost, and is charged then. A carrier that is bound and
/// answers again has its traffic back within this time.
const INTERVAL: Duration = Duration::from_secs(10);

/// What is remembered of a carrier's probes.
#[derive(Default)]
pub(super) struct Probing {
    let_at: Option<Instant>,
    /// A connection was being probed.
    probed: bool,
}

impl Probing {
    /// Lets a message through while the carrier has a place for it.
    pub(super) fn update(&mut self, service: &Service, carrier: &str, takes_probe: bool) {
        if !takes_probe {
            service.let_probe(carrier, false);
        } else if self.let_at.is_none_or(|at| at.elapsed() >= INTERVAL) {
            self.let_at = Some(Instant::now());
            service.let_probe(carrier, true);
        }
    }

    /// Whether the last connection that was being probed isn't any more.
    pub(super) fn ended(&mut self, probed: bool) -> bool {
        std::mem::replace(&mut self.probed, probed) && !probed
    }
}
