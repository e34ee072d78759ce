//! The turn: the transaction that writes what sends, carriers and their connections bring.
//!
//! A commit costs a sync of the disk, so everything that waits shares one commit: the turn takes
//! the inputs that wait in the inbox, writes results and receipts, admits sends, claims messages
//! for connections that have places, commits, and only then answers senders, hands messages over
//! and confirms results. While a turn commits, the inputs of the next one gather; an idle turn adds
//! no delay. Work that waits in the inbox is done whether or not the request that brought it is
//! still there.
//!
//! Each home has an inbox, and a thread that runs the home's turns one after the other. With SQLite
//! a turn is one transaction of statements ([`thread`], [`sends`]), run on that thread. On
//! PostgreSQL it is one call of the function `run_turn` ([`server`]): what the call is to store is
//! decided before it ([`guess`], by rows that are [`remembered`]), and what it stored is told after
//! it ([`tell`]). Inputs that are more than a call can store then take a transaction of statements.

mod consumers;
mod figures;
mod guess;
mod inbox;
mod remembered;
mod sends;
mod server;
mod tell;
mod thread;

use std::sync::{Arc, Mutex, PoisonError};

use domain::ids::Home;
use tokio::sync::oneshot;

pub use consumers::{Consumer, Credit};
pub use figures::{Histogram, TurnFigures};
pub use inbox::InboxDepth;
pub(crate) use thread::spawn;

use consumers::{Consumers, Inboxes};
use figures::Figures;
use inbox::Inbox;

/// The way into the turns of a service: each home has turns of its own, which run beside the other
/// homes' turns. Dropping it ends the turns' threads.
pub(crate) struct Turn {
    inboxes: Inboxes,
    consumers: Arc<Consumers>,
    figures: Arc<Figures>,
    threads: Mutex<Vec<oneshot::Receiver<()>>>,
}

impl Turn {
    /// The turns of so many homes.
    pub(crate) fn new(homes: usize) -> Self {
        let inboxes: Inboxes = (0..homes).map(|_| Arc::default()).collect();
        Self {
            consumers: Arc::new(Consumers::new(Arc::clone(&inboxes))),
            inboxes,
            figures: Arc::default(),
            threads: Mutex::default(),
        }
    }

    pub(crate) fn inbox(&self, home: Home) -> &Arc<Inbox> {
        &self.inboxes[consumers::place(home)]
    }

    /// Notes that messages may wait for any carrier, so that the next turns look for them.
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

    pub(crate) fn figures(&self) -> TurnFigures {
        let depths = self.inboxes.iter().map(|inbox| inbox.depth());
        self.figures.read(depths.sum())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        for inbox in self.inboxes.iter() {
            inbox.close();
        }
    }
}
