//! hyper's timer for the time that the next request's header may take; one for each connection.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use tokio::time::{Sleep as TokioSleep, sleep_until};

type Kept = Arc<Mutex<Option<Pin<Box<TokioSleep>>>>>;

/// hyper makes a sleep for each request and drops it once the header is there. Each time, a sleep of Tokio's
/// would be entered into a list of the runtime and struck out, under a lock shared by all connections. Here
/// it stays in that list, and its deadline moves on, for which no lock is needed.
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
