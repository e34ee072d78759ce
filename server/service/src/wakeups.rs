//! Wakes the tasks that wait for work, in this process and in the others. A wakeup may get lost, so
//! each of these tasks also polls from time to time.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::{Inner, Service};
use store::listening;

/// A kind of work that tasks are woken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wakeup {
    /// Messages were put into the queue.
    Queued,
    /// An upload was accepted, paused, resumed or cancelled, or the clock of a test key was moved.
    BatchAccepted,
    /// An application was reinstated, or an account was enabled.
    Reinstated,
    /// A carrier was drained or resumed, or a hold began or ended.
    Drained,
    /// The clock of a test key was moved.
    ClockMoved,
}

impl Wakeup {
    const ALL: [Self; 5] =
        [Self::Queued, Self::BatchAccepted, Self::Reinstated, Self::Drained, Self::ClockMoved];

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The shortest time between two notifications to the other processes. PostgreSQL makes all
/// transactions that notify take one lock at their commit, so notifications must be few.
const PAUSE: Duration = Duration::from_millis(50);
/// The delay before another attempt to listen.
const RETRY: Duration = Duration::from_secs(1);

/// The notifications for this process's tasks, and the wakeups that are still to be sent to the
/// other processes.
#[derive(Default)]
pub(crate) struct Wakeups {
    pub(crate) queued: Notify,
    pub(crate) batch_accepted: Notify,
    pub(crate) reinstated: Notify,
    pub(crate) drained: Notify,
    pub(crate) clock_moved: Notify,
    pending: AtomicU8,
    notifying: Notify,
}

impl Wakeups {
    /// Sends a wakeup to the other processes soon.
    pub(crate) fn notify_others(&self, what: Wakeup) {
        self.pending.fetch_or(what.bit(), Ordering::Relaxed);
        self.notifying.notify_one();
    }
}

impl Inner {
    /// Wakes the tasks of this process at once, and those of the other processes soon.
    pub(crate) fn wake(&self, what: Wakeup) {
        self.wake_here(what);
        self.wakeups.notify_others(what);
    }

    fn wake_here(&self, what: Wakeup) {
        match what {
            Wakeup::Queued => {
                self.group_commit.poll();
                self.wakeups.queued.notify_waiters();
            }
            Wakeup::BatchAccepted => self.wakeups.batch_accepted.notify_one(),
            Wakeup::Reinstated => self.wakeups.reinstated.notify_one(),
            Wakeup::Drained => self.wakeups.drained.notify_waiters(),
            Wakeup::ClockMoved => self.wakeups.clock_moved.notify_waiters(),
        }
    }
}

/// Starts the task that sends wakeups to the other processes. If `listens` is set, also starts the
/// task that receives theirs.
pub(crate) fn spawn(service: &Service, listens: bool) -> Vec<AbortHandle> {
    let (wakeups, inner) = (Arc::clone(&service.inner.wakeups), Arc::downgrade(&service.inner));
    let mut tasks = vec![tokio::spawn(notify(wakeups, inner.clone())).abort_handle()];
    if listens {
        tasks.push(tokio::spawn(listen(inner)).abort_handle());
    }
    tasks
}

async fn notify(wakeups: Arc<Wakeups>, inner: Weak<Inner>) {
    loop {
        wakeups.notifying.notified().await;
        let Some(inner) = inner.upgrade() else { return };
        notify_now(&Service::from(inner)).await;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Sends the pending wakeups to the other processes.
pub(crate) async fn notify_now(service: &Service) {
    let pending = service.inner.wakeups.pending.swap(0, Ordering::Relaxed);
    if pending == 0 {
        return;
    }
    // A command isn't a node, so it has no token. It doesn't listen either.
    let token = service.inner.node.key().map_or(0, |key| key.token);
    let payload = format!("{token} {pending}");
    let sent = async {
        let mut conn = service.store().read().await?;
        listening::notify(&mut conn, &payload).await
    };
    if let Err(error) = sent.await {
        tracing::warn!(detail = ?error, "can't notify the other processes of new work; they find \
            it when they poll");
    }
}

async fn listen(inner: Weak<Inner>) {
    let mut listener = None;
    while let Some(here) = inner.upgrade() {
        let payload = match &mut listener {
            None => match here.store.listen().await {
                Ok(made) => {
                    listener = Some(made);
                    continue;
                }
                Err(error) => Err(error),
            },
            Some(listener) => {
                let own = here.node.key().map(|key| key.token);
                drop(here);
                let payload = listener.next().await;
                let Some(here) = inner.upgrade() else { return };
                payload.map(|payload| receive(&here, own, &payload))
            }
        };
        if let Err(error) = payload {
            tracing::warn!(%error, "can't listen to the other processes now");
            listener = None;
            tokio::time::sleep(RETRY).await;
        }
    }
}

fn receive(here: &Inner, own: Option<i64>, payload: &str) {
    let Some((token, wakeups)) = payload.split_once(' ') else {
        return;
    };
    let wakeups: u8 = wakeups.parse().unwrap_or(0);
    if token.parse().ok() == own {
        return;
    }
    for what in Wakeup::ALL.into_iter().filter(|what| wakeups & what.bit() != 0) {
        here.wake_here(what);
    }
}
