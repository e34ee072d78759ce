//! Finds out whether a carrier that left messages unanswered, or is degraded, has recovered.
//!
//! Messages with another route take it, except one message at a time, as a probe. A message that
//! waits for the carrier because no other route matches it is the probe. If none waits, the carrier
//! gets a new message every [`INTERVAL`]. A connection that binds and answers `enquire_link`
//! doesn't prove recovery.

use std::time::Duration;

use service::Service;
use tokio::time::Instant;

/// How often the carrier gets a new message as a probe. The carrier may lose the message, and the
/// customer pays even then. So probes are rare, which delays the recovery by up to this time.
const INTERVAL: Duration = Duration::from_secs(10);

/// The state of a carrier's probes that is kept between two updates.
#[derive(Default)]
pub(super) struct Probes {
    let_at: Option<Instant>,
    /// True if a connection was being probed at the last update.
    probed: bool,
}

impl Probes {
    /// Lets a new message through as a probe every [`INTERVAL`] while the carrier has a slot.
    pub(super) fn update(&mut self, service: &Service, carrier: &str, takes_probe: bool) {
        if !takes_probe {
            service.delivery().let_probe(carrier, false);
        } else if self.let_at.is_none_or(|at| at.elapsed() >= INTERVAL) {
            self.let_at = Some(Instant::now());
            service.delivery().let_probe(carrier, true);
        }
    }

    /// Lets the next message through at once.
    pub(super) fn hurry(&mut self) {
        self.let_at = None;
    }

    /// Returns true if a connection was being probed at the last update, and none is now.
    pub(super) fn ended(&mut self, probed: bool) -> bool {
        std::mem::replace(&mut self.probed, probed) && !probed
    }
}
