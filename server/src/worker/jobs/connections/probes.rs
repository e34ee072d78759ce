//! Finds out whether a carrier that left messages unanswered answers again.
//!
//! Its connections take one message at a time by themselves, and other messages take another route.
//! A message that waits for the carrier, because no other route matches it, is the probe. Where
//! none waits, one new message is let through every now and then: that a connection binds and
//! answers `enquire_link` proves nothing.

use std::time::Duration;

use service::Service;
use tokio::time::Instant;

/// How often a new message is let through: it may be lost, and is charged then. A carrier that is
/// bound and answers again gets its messages again within this time.
const INTERVAL: Duration = Duration::from_secs(10);

/// What is remembered of a carrier's probes.
#[derive(Default)]
pub(super) struct Probes {
    let_at: Option<Instant>,
    /// Whether a connection was being probed at the last update.
    probed: bool,
}

impl Probes {
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
