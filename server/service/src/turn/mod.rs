//! The turn: one transaction at a time that writes what sends, carriers and their connections
//! bring.
//!
//! A commit costs a sync of the disk, so everything that waits shares one: the turn takes what
//! waits in the inbox, writes results and receipts, admits sends, claims messages for connections
//! that have places, commits, and only then answers senders, hands messages over and confirms
//! results. While it commits the next one gathers; an idle turn adds no delay. It has a thread of
//! its own, on which a SQLite file is written; work that waits in it goes on whether or not the
//! request that brought it is still there.

mod consumers;
mod figures;
mod inbox;
mod sends;
mod thread;

use std::sync::{Arc, Mutex, PoisonError};

use domain::{Reason, Transid};
use tokio::sync::oneshot;

use crate::admission::{PreparedSend, SendError, SendRequest, Sent};
use crate::delivery::receipts::{CarrierReceipt, Receipt};
use crate::delivery::{Claimed, Lease, Submitted};
use crate::error::{Fault, Result, Uncertain};

pub use consumers::{Consumer, Credit};
pub use figures::{Histogram, TurnFigures};
pub use inbox::InboxDepth;
pub(crate) use thread::spawn;

use consumers::Consumers;
use figures::Figures;
use inbox::{Inbox, Input};

/// The way into the turns of a service. Dropped, its thread ends.
#[derive(Default)]
pub(crate) struct Turn {
    inbox: Arc<Inbox>,
    consumers: Arc<Consumers>,
    figures: Arc<Figures>,
    thread: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Turn {
    pub(crate) async fn send(&self, request: SendRequest) -> std::result::Result<Sent, SendError> {
        let (answer, answered) = oneshot::channel();
        // Computed here, beside other senders; the turn has one thread.
        let send = Box::new(PreparedSend::new(request));
        if self.inbox.push(Input::Send { send, answer }).is_err() {
            return Err(SendError::Refused(Reason::Unavailable));
        }
        // Without an answer the turn's thread has ended, and whether the send is stored isn't known.
        answered.await.unwrap_or(Err(SendError::Lost))
    }

    pub(crate) async fn claim(&self, carrier: &str, limit: usize) -> Result<(Lease, Vec<Claimed>)> {
        let carrier = carrier.to_owned();
        let input = |answer| Input::Claim {
            carrier,
            limit,
            answer,
        };
        self.ask(input).await
    }

    pub(crate) async fn record_results(
        &self,
        carrier: &str,
        results: Vec<Submitted>,
    ) -> Result<Vec<Transid>> {
        let carrier = carrier.to_owned();
        let input = |answer| Input::Results {
            carrier,
            results,
            answer: Some(answer),
        };
        self.ask(input).await
    }

    pub(crate) async fn record_receipts(&self, receipts: Vec<Receipt>) -> Result<()> {
        self.ask(|answer| Input::Receipts { receipts, answer })
            .await
    }

    pub(crate) async fn record_carrier_receipts(
        &self,
        carrier: &str,
        receipts: Vec<CarrierReceipt>,
    ) -> Result<()> {
        let carrier = carrier.to_owned();
        let input = |answer| Input::CarrierReceipts {
            carrier,
            receipts,
            answer,
        };
        self.ask(input).await
    }

    async fn ask<T>(&self, input: impl FnOnce(oneshot::Sender<Result<T>>) -> Input) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        if self.inbox.push(input(answer)).is_err() {
            return Err(Fault::Stopped.into());
        }
        answered.await.unwrap_or_else(|_| {
            let why = "a turn ended before its answer";
            Err(Uncertain::Task(why.to_owned()).into())
        })
    }

    /// Messages may wait for any carrier: the next turn looks.
    pub(crate) fn look(&self) {
        self.consumers.expect_any();
        self.inbox.look();
    }

    /// Takes nothing more, and waits until what was taken is answered.
    pub(crate) async fn close(&self) {
        self.inbox.close();
        let ended = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(ended) = ended {
            // An error says that the thread is gone already.
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
