//! A connection's handle and its events.

use std::sync::Arc;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::session;
use crate::shared::Shared;
use crate::{DeliveryHandle, Event, Outcome, Settings, State, Status, Submit};

/// The most events in one batch.
const BATCH: usize = 512;

/// Waits until a condition holds, which is checked again whenever the waiting are notified.
async fn until(changed: &Notify, holds: impl Fn() -> bool) {
    loop {
        // Made before the check, so that it also knows of a notification during the check.
        let notified = changed.notified();
        if holds() {
            return;
        }
        notified.await;
    }
}

/// A connection to an SMSC. Cheap to clone; all clones are the same connection.
#[derive(Clone)]
pub struct Connection {
    shared: Arc<Shared>,
}

/// What happens on a connection, in order. Dropping this closes the connection.
pub struct Events {
    shared: Arc<Shared>,
}

impl Connection {
    /// Opens the connection and keeps it bound until it is closed. Must be called within a tokio
    /// runtime. `seed` is what the back-off is drawn from.
    pub fn open(settings: Settings, seed: u64) -> (Self, Events) {
        let shared = Arc::new(Shared::new(settings));
        session::start(&shared, seed);
        let events = Events {
            shared: Arc::clone(&shared),
        };
        (Self { shared }, events)
    }

    /// How many submits the connection would take now: 0 unless it is bound, during a pause and
    /// once it is closing; otherwise the free places of the window, or the single place of
    /// [`Status::probing`], and no more than the rate lets out in about 200 ms.
    pub fn free(&self) -> usize {
        self.shared.lock().free(Instant::now())
    }

    /// Resolves when `free()` is more than 0; never once closing.
    pub async fn until_free(&self) {
        until(&self.shared.freed, || self.free() > 0).await;
    }

    /// Takes submits and never waits. Those above `free()` are answered [`Outcome::NotSent`].
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

    /// Answers a delivery with a command_status, of which 0 means that it was taken. A handle of an
    /// earlier bind, or of a delivery that was answered already, is ignored.
    pub fn acknowledge(&self, handle: DeliveryHandle, status: u32) {
        let mut inner = self.shared.lock();
        if let Some(link) = inner.links.get_mut(handle.link) {
            link.acknowledgements.push((handle, status));
            drop(inner);
            self.shared.wake[handle.link].notify_one();
        }
    }

    /// A snapshot for operators.
    pub fn status(&self) -> Status {
        self.shared.lock().status(Instant::now())
    }

    /// Closes the connection: takes no more submits, answers the unwritten ones
    /// [`Outcome::NotSent`], waits for the other answers for [`crate::Timers::close`] at most, and
    /// unbinds. The events end after that.
    pub async fn close(&self) {
        self.shared.begin_close(Instant::now());
        let is_closed = || self.shared.lock().state() == State::Closed;
        until(&self.shared.ended, is_closed).await;
    }
}

impl Events {
    /// Waits for events and returns those that are ready, at most 512. `None` once the connection
    /// is closed and every event was returned. No event is lost when the future is dropped.
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
