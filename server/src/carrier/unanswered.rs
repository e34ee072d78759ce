//! Notices that a carrier answers nothing.

use tokio::time::Instant;

/// The requests that a carrier hasn't answered.
#[derive(Debug, Default)]
pub struct Unanswered {
    count: usize,
    since: Option<Instant>,
}

impl Unanswered {
    /// Counts a request that is being sent.
    pub fn begin(&mut self) {
        self.count += 1;
        self.since.get_or_insert_with(Instant::now);
    }

    /// Counts an answer, or the end of the wait for one.
    pub fn end(&mut self) {
        self.count = self.count.saturating_sub(1);
        self.since = (self.count > 0).then(Instant::now);
    }

    /// Returns since when no request has ended although some are under way.
    pub const fn since(&self) -> Option<Instant> {
        self.since
    }
}
