//! Which pages follow something now.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

/// Most pages of one account that follow something at a time. A browser has six connections to a
/// server, and each of these pages holds one.
const PER_ACCOUNT_MAX: usize = 4;

/// The answers that go on now.
#[derive(Clone)]
pub struct Followers {
    /// The tokens that end them, by account, the oldest first.
    open: Arc<Mutex<HashMap<i64, VecDeque<CancellationToken>>>>,
    stop: CancellationToken,
}

impl Followers {
    /// No answer yet; all end when `stop` is cancelled.
    pub fn new(stop: CancellationToken) -> Self {
        Self {
            open: Arc::default(),
            stop,
        }
    }

    /// Adds an answer to an account. Where there are too many, the oldest ends: its page may be
    /// gone, and asks again if it isn't.
    pub fn enter(&self, account_id: i64) -> Entry {
        let end = self.stop.child_token();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = open.entry(account_id).or_default();
        ends.push_back(end.clone());
        if ends.len() > PER_ACCOUNT_MAX
            && let Some(oldest) = ends.pop_front()
        {
            oldest.cancel();
        }
        Entry {
            followers: self.clone(),
            account_id,
            end,
        }
    }
}

/// An answer's entry among the followers; dropped when the answer ends.
pub struct Entry {
    followers: Followers,
    account_id: i64,
    /// Cancelled when the answer has to end.
    pub end: CancellationToken,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.end.cancel();
        let open = &self.followers.open;
        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ends) = open.get_mut(&self.account_id) {
            ends.retain(|end| !end.is_cancelled());
            if ends.is_empty() {
                open.remove(&self.account_id);
            }
        }
    }
}
