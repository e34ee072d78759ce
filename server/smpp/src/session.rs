//! Keeps one link bound until the connection is closed.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tracing::Span;

use crate::backoff::Backoff;
use crate::encode::Role;
use crate::guard::guarded;
use crate::link::{Ended, Link};
use crate::shared::Shared;
use crate::{Backup, Fault, FaultKind, State, stream};

/// The interval between two logs of the same fault of repeated attempts.
const SAME_FAULT_INTERVAL: Duration = Duration::from_mins(10);

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
    let (mut log, mut backup_log) = (FaultLog::default(), FaultLog::default());
    while !shared.is_closing() {
        let mut ended = attempt_at(&shared, index, role, None, &span, &mut log).await;
        if let Some(backup) = &shared.settings.backup
            && !ended.bound
            && !shared.is_closing()
        {
            let log = &mut backup_log;
            ended = attempt_at(&shared, index, role, Some(backup), &span, log).await;
        }
        if shared.is_closing() {
            break;
        }
        // Waits until the next attempt is due or the connection is closing.
        let _ = timeout(backoff.next(ended.attempt), closed(&shared, index)).await;
    }
    shared.enter(index, State::Closed, None);
}

/// The kind of the last logged fault of an address, and when it was logged.
#[derive(Default)]
struct FaultLog(Option<(FaultKind, Instant)>);

impl FaultLog {
    /// Whether to log why a link or an attempt ended. Logs each end of a bound link. Logs
    /// consecutive faults of the same kind only once per [`SAME_FAULT_INTERVAL`].
    fn is_due(&mut self, ended: &Ended) -> bool {
        let kind = ended.error.kind;
        let is_same = |(logged, at): (FaultKind, Instant)| {
            logged == kind && at.elapsed() < SAME_FAULT_INTERVAL
        };
        let is_due = ended.bound || !self.0.is_some_and(is_same);
        if is_due {
            self.0 = Some((kind, Instant::now()));
        }
        is_due
    }
}

/// Connects to an address once and serves the link until it ends. Records why it ended.
async fn attempt_at(
    shared: &Arc<Shared>,
    index: usize,
    role: Role,
    backup: Option<&Backup>,
    span: &Span,
    log: &mut FaultLog,
) -> Ended {
    shared.enter(index, State::Connecting, None);
    let ended = guarded(attempt(shared, index, role, backup)).await;
    let ended = ended.unwrap_or_else(|| {
        shared.link_down(index);
        Ended::failed(Fault::new(FaultKind::Panic, "the attempt panicked"))
    });
    if !shared.is_closing() {
        let address = backup.map_or(&shared.settings.address, |backup| &backup.address);
        let (code, error) = (ended.error.kind.words().code, &ended.error);
        if log.is_due(&ended) {
            // The link itself works, so "SMPP link down" would mislead.
            let what = match ended.error.kind {
                FaultKind::SubmitsUnanswered => "the carrier doesn't answer submits; binding again",
                _ => "SMPP link down",
            };
            tracing::warn!(parent: span, %address, ?role, fault = code, %error, "{what}");
        }
        shared.enter(index, State::Waiting, Some(ended.error.clone()));
    }
    ended
}

async fn attempt(shared: &Arc<Shared>, index: usize, role: Role, backup: Option<&Backup>) -> Ended {
    let connected = tokio::select! {
        connected = stream::connect(&shared.settings, backup, |missing| {
            shared.await_answer(index, missing);
        }) => connected,
        () = closed(shared, index) => return Ended::failed(Fault::new(FaultKind::Closed, "")),
    };
    match connected {
        Ok(stream) => Link::new(shared, index, role, stream).run().await,
        Err(fault) => Ended::failed(fault),
    }
}

/// Resolves once the connection is closing.
async fn closed(shared: &Shared, index: usize) {
    while !shared.is_closing() {
        shared.wake[index].notified().await;
    }
}
