//! Waking the tasks that wait for work, in this process and in the others. A wake may be lost: each
//! of these tasks also looks for work by itself, now and then.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::store::listening;
use crate::{Inner, Service};

/// A kind of work that tasks are woken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// Messages were put into the queue.
    Queued,
    /// An upload was accepted.
    BatchAccepted,
    /// An application was reinstated.
    Reinstated,
    /// A carrier was drained or resumed.
    Drained,
}

impl Wake {
    const ALL: [Self; 4] = [
        Self::Queued,
        Self::BatchAccepted,
        Self::Reinstated,
        Self::Drained,
    ];

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// How long the other processes wait at most to be told again: each notification takes a lock that
/// all commits with a notification share.
const PAUSE: Duration = Duration::from_millis(50);
/// How long to wait before trying again to listen.
const RETRY: Duration = Duration::from_secs(1);

/// The tasks that wait, and what the other processes are still to be told.
#[derive(Default)]
pub(crate) struct Wakes {
    pub(crate) queued: Notify,
    pub(crate) batch_accepted: Notify,
    pub(crate) reinstated: Notify,
    pub(crate) drained: Notify,
    untold: AtomicU8,
    telling: Notify,
}

impl Wakes {
    /// Wakes the other processes soon.
    pub(crate) fn tell_others(&self, what: Wake) {
        self.untold.fetch_or(what.bit(), Ordering::Relaxed);
        self.telling.notify_one();
    }
}

impl Inner {
    /// Wakes the tasks of this process and, soon, those of the other processes.
    pub(crate) fn wake(&self, what: Wake) {
        self.wake_here(what);
        self.wakes.tell_others(what);
    }

    fn wake_here(&self, what: Wake) {
        match what {
            Wake::Queued => {
                self.turn.look();
                self.wakes.queued.notify_waiters();
            }
            Wake::BatchAccepted => self.wakes.batch_accepted.notify_one(),
            Wake::Reinstated => self.wakes.reinstated.notify_one(),
            Wake::Drained => self.wakes.drained.notify_waiters(),
        }
    }
}

/// Starts the task that tells other processes of work; and, in a process that serves, the task that
/// listens to them.
pub(crate) fn spawn(service: &Service, listens: bool) -> Vec<AbortHandle> {
    let (wakes, inner) = (
        Arc::clone(&service.inner.wakes),
        Arc::downgrade(&service.inner),
    );
    let mut tasks = vec![tokio::spawn(tell(wakes, inner.clone())).abort_handle()];
    if listens {
        tasks.push(tokio::spawn(listen(inner)).abort_handle());
    }
    tasks
}

async fn tell(wakes: Arc<Wakes>, inner: Weak<Inner>) {
    loop {
        wakes.telling.notified().await;
        let Some(inner) = inner.upgrade() else { return };
        tell_now(&Service::from(inner)).await;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Tells the other processes what they haven't been told yet.
pub(crate) async fn tell_now(service: &Service) {
    let untold = service.inner.wakes.untold.swap(0, Ordering::Relaxed);
    if untold == 0 {
        return;
    }
    // A command beside the processes that serve has no token, and doesn't listen.
    let token = service.inner.node.key().map_or(0, |key| key.token);
    let payload = format!("{token} {untold}");
    let told = async {
        let mut conn = service.store().read().await?;
        listening::notify(&mut conn, &payload).await
    };
    if let Err(error) = told.await {
        tracing::warn!(detail = ?error, "the other processes aren't told of new work; they find \
            it by themselves");
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
                payload.map(|payload| hear(&here, own, &payload))
            }
        };
        if let Err(error) = payload {
            tracing::warn!(%error, "can't hear the other processes now");
            listener = None;
            tokio::time::sleep(RETRY).await;
        }
    }
}

fn hear(here: &Inner, own: Option<i64>, payload: &str) {
    let Some((token, told)) = payload.split_once(' ') else {
        return;
    };
    let told: u8 = told.parse().unwrap_or(0);
    if token.parse().ok() == own {
        return;
    }
    for what in Wake::ALL.into_iter().filter(|what| told & what.bit() != 0) {
        here.wake_here(what);
    }
}
