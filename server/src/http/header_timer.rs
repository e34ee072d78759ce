//! hyper's timer for reading a request's header. Each connection has its own.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use parking_lot::Mutex;
use tokio::time::{Sleep as TokioSleep, sleep_until};

type Kept = Arc<Mutex<Option<Pin<Box<TokioSleep>>>>>;

/// Reuses one Tokio sleep for all requests of a connection. hyper creates a sleep for each request
/// and drops it once the header has been read. With a new sleep each time, Tokio would add it to a
/// list of the runtime and remove it again, under a lock that all connections share. A reused sleep
/// stays in that list, and moving its deadline to a later time takes no lock.
#[derive(Default)]
pub struct HeaderTimer {
    /// The sleep, while hyper doesn't use it.
    kept: Kept,
}

impl Timer for HeaderTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(Instant::now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        let deadline = deadline.into();
        let sleep = match take(&self.kept) {
            Some(mut sleep) => {
                sleep.as_mut().reset(deadline);
                sleep
            }
            None => Box::pin(sleep_until(deadline)),
        };
        Box::pin(HeaderSleep { sleep: Some(sleep), kept: Arc::clone(&self.kept) })
    }
}

/// Returns its sleep to the timer when dropped.
struct HeaderSleep {
    sleep: Option<Pin<Box<TokioSleep>>>,
    kept: Kept,
}

impl Sleep for HeaderSleep {}

impl Future for HeaderSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.sleep {
            Some(sleep) => sleep.as_mut().poll(context),
            // Only `drop` takes the sleep.
            None => Poll::Ready(()),
        }
    }
}

impl Drop for HeaderSleep {
    fn drop(&mut self) {
        *self.kept.lock() = self.sleep.take();
    }
}

fn take(kept: &Kept) -> Option<Pin<Box<TokioSleep>>> {
    kept.lock().take()
}

#[cfg(test)]
mod tests {
    use futures_util::poll;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_sleep_that_was_given_back_ends_at_its_new_deadline() {
        let timer = HeaderTimer::default();
        let started = tokio::time::Instant::now();
        let after = |seconds| (started + Duration::from_secs(seconds)).into_std();
        let mut first = timer.sleep_until(after(10));
        assert!(poll!(&mut first).is_pending());
        drop(first);
        // The first deadline is later than the previous one, so no lock is needed. The second one
        // reuses a sleep that has ended.
        for seconds in [20, 25] {
            timer.sleep_until(after(seconds)).await;
            let waited = started.elapsed().as_secs();
            assert_eq!(waited, seconds);
        }
    }
}
