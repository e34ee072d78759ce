//! Keeps one link bound until the connection is closed.

use std::sync::Arc;

use tokio::time::timeout;
use tracing::Span;

use crate::backoff::Backoff;
use crate::encode::Role;
use crate::guard::guarded;
use crate::link::{Ended, Link};
use crate::shared::Shared;
use crate::{State, stream};

/// Starts the connection's links.
pub(crate) fn start(shared: &Arc<Shared>, seed: u64) {
    for (index, role) in shared.settings.bind.roles().iter().enumerate() {
        let seed = seed.wrapping_add(index as u64);
        // The task gets the span for its log events but doesn't enter it, because the task is
        // polled for every message.
        let span = Span::current();
        tokio::spawn(keep(Arc::clone(shared), index, *role, seed, span));
    }
}

/// Connects, binds and serves in a loop.
async fn keep(shared: Arc<Shared>, index: usize, role: Role, seed: u64, span: Span) {
    let timers = shared.settings.timers;
    let mut backoff = Backoff::new(timers.backoff_min, timers.backoff_max, seed);
    while !shared.is_closing() {
        shared.enter(index, State::Connecting, None);
        let ended = guarded(attempt(&shared, index, role)).await;
        let ended = ended.unwrap_or_else(|| {
            shared.link_down(index);
            Ended::failed("the attempt panicked".to_owned())
        });
        if shared.is_closing() {
            break;
        }
        let address = &shared.settings.address;
        tracing::warn!(parent: &span, %address, ?role, error = ended.error, "SMPP link down");
        shared.enter(index, State::Waiting, Some(ended.error));
        // Waits until the next attempt is due or the connection is closing.
        let _ = timeout(backoff.next(ended.attempt), closed(&shared, index)).await;
    }
    shared.enter(index, State::Closed, None);
}

/// Connects once and serves the link until it ends.
async fn attempt(shared: &Arc<Shared>, index: usize, role: Role) -> Ended {
    let settings = &shared.settings;
    let connect = timeout(settings.timers.connect, stream::connect(settings));
    let connected = tokio::select! {
        connected = connect => connected,
        () = closed(shared, index) => return Ended::failed(String::new()),
    };
    match connected {
        Ok(Ok(stream)) => Link::new(shared, index, role, stream).run().await,
        Ok(Err(error)) => Ended::failed(format!("connect: {error}")),
        Err(_) => Ended::failed("connect: no answer in time".to_owned()),
    }
}

/// Resolves once the connection is closing.
async fn closed(shared: &Shared, index: usize) {
    while !shared.is_closing() {
        shared.wake[index].notified().await;
    }
}
