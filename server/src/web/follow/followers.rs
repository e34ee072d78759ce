//! Keeps track of the open responses with events.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The maximum number of pages of an account that follow data at a time. A browser opens six
/// connections to a server, and each of these pages holds one.
const PER_ACCOUNT_MAX: usize = 4;

/// The open responses, which send events.
#[derive(Clone)]
pub struct Followers {
    /// The tokens that end the responses, by account, oldest first.
    open: Arc<Mutex<HashMap<i64, VecDeque<CancellationToken>>>>,
    stop: CancellationToken,
}

impl Followers {
    /// Returns an empty set of responses. Cancelling `stop` ends all responses that are added.
    pub fn new(stop: CancellationToken) -> Self {
        Self { open: Arc::default(), stop }
    }

    /// Adds a response for an account. If the account has too many, the oldest one ends. The page
    /// of that response may be gone; if it is still open, it reconnects.
    pub fn enter(&self, account_id: i64) -> Entry {
        let end = self.stop.child_token();
        let mut open = self.open.lock();
        let ends = open.entry(account_id).or_default();
        ends.push_back(end.clone());
        if ends.len() > PER_ACCOUNT_MAX
            && let Some(oldest) = ends.pop_front()
        {
            oldest.cancel();
        }
        Entry { followers: self.clone(), account_id, end }
    }
}

/// A response's entry among the followers. Drop it when the response ends.
pub struct Entry {
    followers: Followers,
    account_id: i64,
    /// Cancelled when the response has to end.
    pub end: CancellationToken,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.end.cancel();
        let open = &self.followers.open;
        let mut open = open.lock();
        if let Some(ends) = open.get_mut(&self.account_id) {
            ends.retain(|end| !end.is_cancelled());
            if ends.is_empty() {
                open.remove(&self.account_id);
            }
        }
    }
}
