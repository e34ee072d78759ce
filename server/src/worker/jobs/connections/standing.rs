//! Since when each connection works, or doesn't.
//!
//! A connection that fails tries to bind again, pauses, probes and is bound for a short time. A
//! rebind or a reload by staff replaces it by another connection. None of that begins a new
//! failure, so "since" stays the time when the present failure began.

use std::collections::HashMap;
use std::time::Duration;

use domain::records::{ConnectionRecord, ConnectionState};
use tokio::time::Instant;

/// How long the standing of a missing connection is kept. Binding again takes less time.
const KEPT: Duration = Duration::from_mins(1);

/// The standings of the connections, by carrier and number.
#[derive(Default)]
pub(super) struct Standings(HashMap<(String, i64), Standing>);

struct Standing {
    works: bool,
    since: Instant,
    /// The number of losses at the last update.
    lost: u64,
    seen_at: Instant,
}

impl Standings {
    /// Sets since when a connection works, or doesn't. `lost` is the number of its losses.
    pub(super) fn update(&mut self, record: &mut ConnectionRecord, lost: u64) {
        let now = Instant::now();
        let age_ms = record.updated_at.ms_since(record.since).max(0).unsigned_abs();
        let entered = now.checked_sub(Duration::from_millis(age_ms)).unwrap_or(now);
        let works = record.state == ConnectionState::Bound;
        let key = (record.carrier.clone(), record.number);
        let known = self.0.get(&key).filter(|known| {
            // A connection can be lost and bound again between two updates.
            known.works == works && !(works && lost > known.lost)
        });
        let since = known.map_or(entered, |known| known.since.min(entered));
        self.0.insert(key, Standing { works, since, lost, seen_at: now });
        let since_ms = i64::try_from((now - since).as_millis()).unwrap_or(0);
        record.since = record.updated_at.plus_ms(-since_ms);
    }

    /// Forgets the connections that are gone.
    pub(super) fn forget(&mut self) {
        self.0.retain(|_, standing| standing.seen_at.elapsed() < KEPT);
    }
}
