//! hyper's timer for the time that the next request's header may take; one for each connection.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use tokio::time::{Sleep as TokioSleep, sleep_until};

type Kept = Arc<Mutex<Option<Pin<Box<TokioSleep>>>>>;

/// hyper makes a sleep for each request and drops it once the header is there. Each time, a sleep
/// of Tokio's would be entered into a list of the runtime and struck out, under a lock shared by
/// all connections. Here it stays in that list, and its deadline moves on, for which no lock is
/// needed.
#[derive(Default)]
pub struct HeaderTimer {
    /// Until hyper asks for the next.
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
        Box::pin(HeaderSleep {
            sleep: Some(sleep),
            kept: Arc::clone(&self.kept),
        })
    }
}

/// Given back when it is dropped.
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
            // Taken away only when it is dropped.
            None => Poll::Ready(()),
        }
    }
}

impl Drop for HeaderSleep {
    fn drop(&mut self) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = self.sleep.take();
    }
}

fn take(kept: &Kept) -> Option<Pin<Box<TokioSleep>>> {
    kept.lock().unwrap_or_else(PoisonError::into_inner).take()
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
        // Once later than before, which needs no lock, and once after it has ended.
        for seconds in [20, 25] {
            timer.sleep_until(after(seconds)).await;
            let waited = started.elapsed().as_secs();
            assert_eq!(waited, seconds);
        }
    }
}
