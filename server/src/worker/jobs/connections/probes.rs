//! Finds out whether a carrier that left messages unanswered, or is degraded, has recovered.
//!
//! Such a carrier gets one message at a time. All other messages take another
//! route. If a message waits for the carrier because no other route matches it, that message is the
//! probe. If none waits, one new message is let through now and then. A connection that binds and
//! answers `enquire_link` doesn't prove recovery.

use std::time::Duration;

use service::Service;
use tokio::time::Instant;

/// How often a new message is let through. The message may be lost, and it is charged even then. A
/// carrier that is bound and has recovered gets its messages again within this time.
const INTERVAL: Duration = Duration::from_secs(10);

/// The state of a carrier's probes that is kept between two updates.
#[derive(Default)]
pub(super) struct Probes {
    let_at: Option<Instant>,
    /// True if a connection was being probed at the last update.
    probed: bool,
}

impl Probes {
    /// Lets a message through now and then while the carrier has a slot for it.
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
