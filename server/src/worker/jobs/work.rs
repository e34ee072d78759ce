//! The work of a job, and when the job runs again.

use std::time::Duration;

use async_trait::async_trait;
use service::{Result, Service};

use crate::worker::context::Context;

#[async_trait]
pub(super) trait Work: Send {
    /// Runs once. `woken` is true if the job was woken before its interval was over.
    ///
    /// # Errors
    /// If the run can't continue. The error is logged, and the job runs again after a pause.
    async fn run(&mut self, context: &Context, woken: bool) -> Result<Next>;
}

/// When a job runs again.
pub(super) enum Next {
    AtOnce,
    /// After a pause, or when the job is woken.
    Soon,
    /// After the interval, or when the job is woken.
    AfterInterval,
    /// After this time or the interval, whichever is shorter, or when the job is woken.
    Within(Duration),
}

/// Work that keeps no state between two runs. If a run fails, the next one is after the interval.
pub(super) struct Stateless<F>(pub(super) fn(Service) -> F);

#[async_trait]
impl<F: Future<Output = Result<()>> + Send + 'static> Work for Stateless<F> {
    async fn run(&mut self, context: &Context, _woken: bool) -> Result<Next> {
        attempt("a job failed", (self.0)(context.service.clone())).await;
        Ok(Next::AfterInterval)
    }
}

/// Returns the result of a part of a job. If the part fails, logs `failed` and returns `None`, so
/// that the job continues with its other parts.
pub(super) async fn attempt<T>(failed: &str, part: impl Future<Output = Result<T>>) -> Option<T> {
    match part.await {
        Ok(result) => Some(result),
        Err(error) => {
            tracing::error!(detail = ?error, "{failed}");
            None
        }
    }
}
