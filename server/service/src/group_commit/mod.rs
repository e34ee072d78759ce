//! Group commit: one transaction stores what many sends, carriers and connections bring.
//!
//! A commit costs a sync of the disk, so everything that waits shares one. A commit group takes the
//! inputs from the inbox, stores results and receipts, admits sends, and claims messages for
//! connections that have free slots. Only after the commit does it answer senders, submit messages
//! and confirm results. While one group commits, the inputs of the next one gather; an idle service
//! adds no delay. An input in the inbox is processed even if its request has gone.
//!
//! Each shard has an inbox and a thread that runs its groups one after the other. With SQLite a
//! group is one transaction of statements on that thread ([`thread`], [`sends`]). On PostgreSQL it
//! is one call of the function `run_commit_group` ([`server`]): the process decides what the call
//! stores ([`optimistic`], by rows in its [`cache`]), and answers by what it stored ([`reply`]).
//! Inputs that don't fit into a call then take a transaction of statements.

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

/// The way into the groups of a service: each shard has groups of its own, which run beside the
/// other shards' groups. Dropping it ends the groups' threads.
pub(crate) struct GroupCommit {
    inboxes: Inboxes,
    consumers: Arc<Consumers>,
    figures: Arc<Figures>,
    threads: Mutex<Vec<oneshot::Receiver<()>>>,
}

impl GroupCommit {
    /// The groups of so many shards.
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
        &self.inboxes[consumers::place(shard)]
    }

    /// Notes that messages may wait for any carrier, so that the next groups look for them.
    pub(crate) fn look(&self) {
        self.consumers.expect_any();
        for inbox in self.inboxes.iter() {
            inbox.reconsider();
        }
    }

    /// Takes no more inputs, and waits until the inputs that were taken are answered.
    pub(crate) async fn close(&self) {
        for inbox in self.inboxes.iter() {
            inbox.close();
        }
        let ended =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for ended in ended {
            // An error says that the thread has ended already.
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
