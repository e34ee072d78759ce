//! The order in which transactions write. A process runs only a few writing transactions at a time,
//! with SQLite only one. The gate admits waiting transactions by priority, so that a send doesn't
//! wait behind an upload of a million rows.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use super::file::FileConnection;

/// The purpose of a transaction, highest priority first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Sends, results and receipts.
    CommitGroup,
    /// Verbs. Somebody in the portal or at the command line waits for the answer.
    Verb,
    /// Follow-up work for carriers' responses, and for responses that never came.
    Results,
    /// Uploads that become messages, and other background work.
    Bulk,
}

/// The maximum number of transactions with a higher priority that go first while transactions of a
/// priority wait, so that none waits forever. Each priority is a class.
const PASSED_OVER_MAX: [u32; CLASSES] = [0, 6, 6, 8];
const CLASSES: usize = 4;

/// Admits as many transactions at a time as there are slots.
pub struct Gate(Arc<Mutex<State>>);

/// A slot for a writer: the connection that writes to a SQLite file, or `None` if a pool has the
/// connections.
pub type Slot = Option<Box<FileConnection>>;

struct State {
    slots: usize,
    free: Vec<Slot>,
    waiting: [VecDeque<oneshot::Sender<Permit>>; CLASSES],
    passed_over: [u32; CLASSES],
}

/// The right to write. Dropping it passes the slot on to the next transaction.
pub struct Permit(Option<(Arc<Mutex<State>>, Slot)>);

impl Permit {
    /// Returns the connection that writes to a SQLite file.
    pub fn file(&mut self) -> Option<&mut FileConnection> {
        self.0.as_mut().and_then(|(_, slot)| slot.as_deref_mut())
    }
}

impl Gate {
    pub fn new(slots: Vec<Slot>) -> Self {
        Self(Arc::new(Mutex::new(State {
            slots: slots.len(),
            free: slots,
            waiting: Default::default(),
            passed_over: Default::default(),
        })))
    }

    /// Waits for the right to write.
    pub async fn enter(&self, priority: Priority) -> Permit {
        let turn = {
            let mut state = lock(&self.0);
            if let Some(slot) = state.free.pop() {
                return Permit(Some((Arc::clone(&self.0), slot)));
            }
            let (sender, turn) = oneshot::channel();
            state.waiting[priority as usize].push_back(sender);
            turn
        };
        match turn.await {
            Ok(permit) => permit,
            // A sender is removed from the waiting list only to send a permit.
            Err(_) => std::future::pending().await,
        }
    }

    /// Returns whether a transaction is waiting for the right to write.
    pub fn does_somebody_wait(&self) -> bool {
        lock(&self.0).waiting.iter().any(|line| !line.is_empty())
    }

    /// Waits for the transactions in flight, and admits no more transactions.
    pub async fn close(&self) {
        let slots = std::mem::take(&mut lock(&self.0).slots);
        for _ in 0..slots {
            // The permit's slot isn't released, so no other transaction can take it.
            self.enter(Priority::CommitGroup).await.0 = None;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut held = self.0.take();
        while let Some((gate, slot)) = held.take() {
            let mut state = lock(&gate);
            let Some(next) = state.next() else {
                state.free.push(slot);
                return;
            };
            drop(state);
            // If the waiting task is gone, the permit comes back.
            let sent = next.send(Self(Some((gate, slot))));
            held = sent.err().and_then(|mut back| back.0.take());
        }
    }
}

impl State {
    /// Picks the next transaction: from the first class that was passed over often enough,
    /// otherwise from the highest class that waits.
    fn next(&mut self) -> Option<oneshot::Sender<Permit>> {
        let waits = |class: &usize| !self.waiting[*class].is_empty();
        let due = (1..CLASSES)
            .filter(waits)
            .find(|class| self.passed_over[*class] >= PASSED_OVER_MAX[*class]);
        let class = due.or_else(|| (0..CLASSES).find(waits))?;
        for lower in class + 1..CLASSES {
            if !self.waiting[lower].is_empty() {
                self.passed_over[lower] += 1;
            }
        }
        self.passed_over[class] = 0;
        self.waiting[class].pop_front()
    }
}

fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
