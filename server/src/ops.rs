//! The operator's address: health and metrics, separate from the public address.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, StatusCode};
use axum::routing::get;
use service::Service;
use tokio_util::sync::CancellationToken;

use crate::data_files;
use crate::metrics::{self, Metrics, Readings};

/// The state of the operator's address.
#[derive(Clone)]
pub struct Ops {
    pub service: Service,
    pub metrics: Arc<Metrics>,
    /// The folders that grow.
    pub folders: Arc<BTreeSet<PathBuf>>,
    /// Cancelled at the first signal to stop. The process is then alive, but no longer ready.
    pub stop: CancellationToken,
}

/// Returns a router for `/healthz` (the process responds), `/readyz` (it can do its work) and
/// `/metrics`.
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
            tracing::warn!(detail = ?error, "not ready: the database doesn't answer, or accepts no \
                writes");
            (StatusCode::SERVICE_UNAVAILABLE, "the database doesn't answer, or accepts no writes\n")
        }
    }
}

async fn metrics(State(ops): State<Ops>) -> ([(HeaderName, &'static str); 1], String) {
    let text = ops.metrics.render(Some(readings(&ops.service, &ops.folders).await));
    ([(CONTENT_TYPE, metrics::MEDIA_TYPE)], text)
}

async fn readings(service: &Service, folders: &BTreeSet<PathBuf>) -> Readings {
    let free = folders.iter().filter_map(|folder| {
        Some((folder.display().to_string(), data_files::free_bytes(folder).ok()?))
    });
    Readings {
        disk_free_bytes: free.collect(),
        now: service.clock().now(),
        commit_groups: service.group_figures(),
        shards_skipped: service.shards_skipped(),
        inbound: service.inbound_counts(),
        password_hashes: service.accounts().password_hashes(),
        strained_limits: service.accounts().strained_limits().len(),
        queue: readable("the queue", service.delivery().queue_state().await),
        carriers: readable("the carriers", service.delivery().carriers().await),
        carrier_counts: service.delivery().carrier_counts(),
        mails: readable("the mails", service.operations().mail_counts().await),
        unpaid: service.operations().unpaid_use(),
        broken_ledgers: service.operations().broken_ledgers(),
        is_held: readable("the hold", service.operations().hold_since().await)
            .map(|since| since.is_some()),
        backup_age_ms: readable("the last backup", service.operations().backup_age_ms().await),
        oldest_transaction_ms: readable(
            "the open transactions",
            service.operations().oldest_transaction_ms().await,
        )
        .flatten(),
    }
}

/// Returns a reading, or `None` if it failed, because the other metrics are useful without it.
fn readable<T>(what: &str, reading: service::Result<T>) -> Option<T> {
    match reading {
        Ok(value) => Some(value),
        Err(error) => {
            tracing::warn!(detail = ?error, "metrics lack {what}: the database can't be read");
            None
        }
    }
}

#[cfg(test)]
mod tests;
