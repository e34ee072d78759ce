//! Catches panics of a link, so that they don't end the connection.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// Returns the future's result, or `None` if it panicked. A future that panicked isn't polled
/// again. It may have left the values that it was changing inconsistent.
pub(crate) async fn guarded<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(poll) => poll.map(Some),
        Err(_) => Poll::Ready(None),
    })
    .await
}

#[cfg(test)]
mod tests;
