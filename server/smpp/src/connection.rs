//! The handle of a connection, and its events.

use std::sync::Arc;

use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::session;
use crate::shared::Shared;
use crate::trace::TracedPdu;
use crate::{DeliveryHandle, Event, Outcome, Settings, State, Status, Submit};

/// The maximum number of events in one batch.
const BATCH: usize = 512;

/// Waits until `holds` returns true. Checks again after each notification.
async fn until(changed: &Notify, holds: impl Fn() -> bool) {
    loop {
        // Created before the check, so that a notification during the check isn't missed.
        let notified = changed.notified();
        if holds() {
            return;
        }
        notified.await;
    }
}

/// A connection to an SMSC. Cheap to clone; all clones share one connection.
#[derive(Clone)]
pub struct Connection {
    shared: Arc<Shared>,
}

/// The events of a connection, in order. Dropping this closes the connection.
pub struct Events {
    shared: Arc<Shared>,
}

impl Connection {
    /// Opens the connection and keeps it bound until it is closed. Must be called within a tokio
    /// runtime. `seed` determines the jitter of the backoff.
    pub fn open(settings: Settings, seed: u64) -> (Self, Events) {
        let shared = Arc::new(Shared::new(settings));
        session::start(&shared, seed);
        let events = Events { shared: Arc::clone(&shared) };
        (Self { shared }, events)
    }

    /// Returns how many submits the connection can accept now. Returns 0 while the connection isn't
    /// bound, during a pause after refusals, and once it is closing. Otherwise returns the number
    /// of free slots in the window. While [`Status::probing`], [`Status::held`] or
    /// [`Status::silent`] is true, the window has a single slot. With a rate limit, returns no more
    /// than the rate allows in about 200 ms.
    pub fn free(&self) -> usize {
        self.shared.lock().free(Instant::now())
    }

    /// Waits until `free()` is more than 0. Never resolves once the connection is closing.
    pub async fn until_free(&self) {
        until(&self.shared.freed, || self.free() > 0).await;
    }

    /// Accepts submits without waiting. Submits beyond `free()` get [`Outcome::NotSent`].
    pub fn submit(&self, submits: Vec<Submit>) {
        let mut inner = self.shared.lock();
        let mut free = inner.free(Instant::now());
        for submit in submits {
            if free == 0 {
                inner.answer(submit.tag, Outcome::NotSent);
            } else {
                free -= 1;
                inner.queue.push_back(submit);
            }
        }
        self.shared.announce(inner);
        self.shared.wake[0].notify_one();
    }

    /// Answers a delivery with a command_status; 0 accepts the delivery. Ignores a handle from an
    /// earlier bind, and a second answer to the same delivery.
    pub fn acknowledge(&self, handle: DeliveryHandle, status: u32) {
        let mut inner = self.shared.lock();
        if let Some(link) = inner.links.get_mut(handle.link) {
            link.acknowledgements.push((handle, status));
            drop(inner);
            self.shared.wake[handle.link].notify_one();
        }
    }

    /// Copies the connection's PDUs to a channel until its receiver is dropped. A submit is copied
    /// when the socket has accepted it. The copies carry the number `source`.
    pub fn trace(&self, source: usize, to: mpsc::Sender<TracedPdu>) {
        self.shared.taps.add(source, to);
    }

    /// Returns a snapshot for operators.
    pub fn status(&self) -> Status {
        self.shared.lock().status(Instant::now())
    }

    /// Closes the connection. Accepts no more submits, answers the unwritten ones with
    /// [`Outcome::NotSent`], waits at most [`crate::Timers::close`] for the other answers, and
    /// unbinds. After that, the events end.
    pub async fn close(&self) {
        self.shared.begin_close(Instant::now());
        let is_closed = || self.shared.lock().state() == State::Closed;
        until(&self.shared.ended, is_closed).await;
    }
}

impl Events {
    /// Waits for events and returns up to 512 of them. Returns `None` once the connection is closed
    /// and every event was returned. Dropping the future loses no event.
    pub async fn next(&mut self) -> Option<Vec<Event>> {
        loop {
            let (events, closed) = self.shared.take_events(BATCH);
            if !events.is_empty() {
                return Some(events);
            }
            if closed {
                return None;
            }
            self.shared.ready.notified().await;
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.shared.begin_close(Instant::now());
    }
}
