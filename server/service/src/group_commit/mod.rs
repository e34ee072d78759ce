//! Group commit: one transaction stores the inputs of many senders, carriers and connections.
//!
//! Each commit costs a disk sync, so all waiting inputs share one. A commit group takes the inputs
//! from the inbox, stores results and receipts, admits sends, and claims messages for connections
//! with free slots. After the commit, the group answers senders, passes claimed messages to their
//! connections, and confirms results. While one group commits, the inputs of the next group gather.
//! If no group is running, an input starts one at once. An input in the inbox is processed even if
//! its caller has gone.
//!
//! Each shard has an inbox and a thread that runs its groups one after the other. On SQLite a group
//! is one transaction of statements on that thread ([`thread`], [`sends`]). On PostgreSQL a group
//! is one call of the function `run_commit_group` ([`server`]). The process decides about the
//! inputs from its cached rows ([`optimistic`], [`cache`]). The call stores the decisions whose
//! rows haven't changed, and the process replies accordingly ([`reply`]). A transaction of
//! statements then stores the results and receipts that the call couldn't store.

mod cache;
mod consumers;
mod figures;
mod inbox;
mod optimistic;
mod reply;
mod sends;
mod server;
mod thread;

use std::sync::{Arc, Mutex, PoisonError};

use domain::ids::Shard;
use tokio::sync::oneshot;

pub use consumers::{Consumer, Credit};
pub use figures::{GroupFigures, Histogram};
pub use inbox::InboxDepth;
pub(crate) use thread::spawn;

use consumers::{Consumers, Inboxes};
use figures::Figures;
use inbox::Inbox;

/// The commit groups of a service. Each shard has its own groups, which run in parallel with those
/// of other shards. Dropping this ends the groups' threads.
pub(crate) struct GroupCommit {
    inboxes: Inboxes,
    consumers: Arc<Consumers>,
    figures: Arc<Figures>,
    threads: Mutex<Vec<oneshot::Receiver<()>>>,
}

impl GroupCommit {
    /// Creates an inbox for each of this many shards. [`spawn`] starts their threads.
    pub(crate) fn new(shards: usize) -> Self {
        let inboxes: Inboxes = (0..shards).map(|_| Arc::default()).collect();
        Self {
            consumers: Arc::new(Consumers::new(Arc::clone(&inboxes))),
            inboxes,
            figures: Arc::default(),
            threads: Mutex::default(),
        }
    }

    pub(crate) fn inbox(&self, shard: Shard) -> &Arc<Inbox> {
        &self.inboxes[consumers::index(shard)]
    }

    /// Notes that messages may wait for any carrier, and wakes all shards' threads, so that their
    /// next groups look for these messages.
    pub(crate) fn poll(&self) {
        self.consumers.expect_any();
        for inbox in self.inboxes.iter() {
            inbox.reconsider();
        }
    }

    /// Takes no more inputs, and waits until all earlier inputs are answered.
    pub(crate) async fn close(&self) {
        for inbox in self.inboxes.iter() {
            inbox.close();
        }
        let ended =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for ended in ended {
            // Always an error: a thread sends nothing and drops the channel when it ends.
            let _ = ended.await;
        }
    }

    pub(crate) fn figures(&self) -> GroupFigures {
        let depths = self.inboxes.iter().map(|inbox| inbox.depth());
        self.figures.read(depths.sum())
    }
}

impl Drop for GroupCommit {
    fn drop(&mut self) {
        for inbox in self.inboxes.iter() {
            inbox.close();
        }
    }
}
