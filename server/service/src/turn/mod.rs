//! The turn: one transaction at a time that writes what sends, carriers and their connections
//! bring.
//!
//! A commit costs a sync of the disk, so everything that waits shares one commit: the turn takes
//! the inputs that wait in the inbox, writes results and receipts, admits sends, claims messages
//! for connections that have places, commits, and only then answers senders, hands messages over
//! and confirms results. While a turn commits, the inputs of the next one gather; an idle turn adds
//! no delay. The turn has a thread of its own, on which a SQLite file is written; work that waits
//! in the inbox is done whether or not the request that brought it is still there.

mod consumers;
mod figures;
mod guess;
mod inbox;
mod remembered;
mod sends;
mod server;
mod thread;

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

pub use consumers::{Consumer, Credit};
pub use figures::{Histogram, TurnFigures};
pub use inbox::InboxDepth;
pub(crate) use thread::spawn;

use consumers::Consumers;
use figures::Figures;
use inbox::Inbox;

/// The way into the turns of a service. Dropping it ends the turn's thread.
#[derive(Default)]
pub(crate) struct Turn {
    pub(crate) inbox: Arc<Inbox>,
    consumers: Arc<Consumers>,
    figures: Arc<Figures>,
    thread: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Turn {
    /// Notes that messages may wait for any carrier, so that the next turn looks for them.
    pub(crate) fn look(&self) {
        self.consumers.expect_any();
        self.inbox.look();
    }

    /// Takes no more inputs, and waits until the inputs that were taken are answered.
    pub(crate) async fn close(&self) {
        self.inbox.close();
        let ended = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(ended) = ended {
            // An error says that the thread has ended already.
            let _ = ended.await;
        }
    }

    pub(crate) fn figures(&self) -> TurnFigures {
        self.figures.read(self.inbox.depth())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.inbox.close();
    }
}
