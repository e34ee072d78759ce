//! The operator's address: health and metrics, apart from the public one.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use service::Service;
use tokio_util::sync::CancellationToken;

use crate::metrics::{self, Metrics, Queue, carriers, turns};

/// What the operator's pages look at.
#[derive(Clone)]
pub struct Ops {
    pub service: Service,
    pub metrics: Arc<Metrics>,
    /// Cancelled once the process is asked to stop: it is alive, but no longer ready.
    pub stop: CancellationToken,
}

/// `/healthz`: the process answers. `/readyz`: it can do its work. `/metrics`: what it counted.
pub fn router(ops: Ops) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(ops)
}

async fn ready(State(ops): State<Ops>) -> (StatusCode, &'static str) {
    if ops.stop.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n");
    }
    match ops.service.ping().await {
        Ok(()) => (StatusCode::OK, "ready\n"),
        Err(error) => {
            tracing::warn!(
                ?error,
                "not ready: the database doesn't answer, or takes no writes"
            );
            (
                StatusCode::SERVICE_UNAVAILABLE,
                "the database doesn't answer, or takes no writes\n",
            )
        }
    }
}

async fn metrics(State(ops): State<Ops>) -> ([(&'static str, &'static str); 1], String) {
    let now = ops.service.clock().now();
    let queue = match ops.service.queue_state().await {
        Ok(queue) => Some(Queue {
            waiting: queue.waiting,
            oldest_ms: (queue.oldest).map_or(0, |oldest| now.ms_since(oldest).max(0)),
        }),
        Err(error) => {
            tracing::warn!(?error, "the queue can't be counted");
            None
        }
    };
    let kind = ("content-type", "text/plain; version=0.0.4; charset=utf-8");
    let mut text = ops.metrics.render(queue);
    text.push_str(&turns::render(&ops.service.turn_figures()));
    match ops.service.oldest_transaction_ms().await {
        Ok(Some(age_ms)) => text.push_str(&metrics::oldest_transaction(age_ms)),
        Ok(None) => {}
        Err(error) => tracing::warn!(?error, "open transactions can't be looked at"),
    }
    match ops.service.carriers().await {
        Ok(found) => text.push_str(&carriers::render(&found, now)),
        Err(error) => tracing::warn!(?error, "the carriers can't be looked at"),
    }
    text.push_str(&ops.metrics.refused.render());
    ([kind], text)
}
