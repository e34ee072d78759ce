//! Turns uploads into messages, hands queued messages to a carrier, records receipts, and sweeps what is
//! over.
//!
//! Nothing is decided in memory: a claim is durable before the submit, an outcome before the queue row
//! goes, a receipt before the next one is taken. A process that dies leaves rows under a lease, which are
//! claimed again.

mod expanding;
mod resuming;
mod sending;
mod sweeping;

use std::sync::Arc;
use std::time::Duration;

use domain::Timestamp;
use service::{Receipt, Service};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::carrier::Carrier;
use crate::carrier::sandbox::Sandbox;

/// How long to wait before something that failed is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// How long receipts gather before the next ones are recorded: each time costs a commit.
const GATHER: Duration = Duration::from_millis(10);
/// Messages that are read at once when a start looks for receipts that are still to come.
const OUTSTANDING_CHUNK: i64 = 1000;

/// What the dispatcher needs of the settings.
#[derive(Clone, Debug)]
pub struct DispatcherSettings {
    /// How long the sandbox carrier takes to deliver.
    pub sandbox_delay_ms: u64,
    /// What carriers are given for applications without a sender name.
    pub default_sender: String,
}

/// Dispatches until the token is cancelled.
pub fn spawn(
    service: Service,
    settings: DispatcherSettings,
    shutdown: CancellationToken,
) -> JoinHandle<()> {
    let carrier = Arc::new(Sandbox::new(
        service.clock().clone(),
        settings.sandbox_delay_ms,
    ));
    tokio::spawn(async move {
        free_leases(&service, &shutdown).await;
        let started = service.clock().now();
        tokio::join!(
            supervise("sending", &shutdown, || sending::run(
                service.clone(),
                Arc::clone(&carrier),
                settings.default_sender.clone(),
                shutdown.clone()
            )),
            supervise("receipts", &shutdown, || receive(
                service.clone(),
                Arc::clone(&carrier),
                shutdown.clone()
            )),
            supervise("recovery", &shutdown, || recover(
                service.clone(),
                Arc::clone(&carrier),
                started,
                shutdown.clone()
            )),
            supervise("expanding", &shutdown, || expanding::run(
                service.clone(),
                shutdown.clone()
            )),
            supervise("resuming", &shutdown, || resuming::run(
                service.clone(),
                shutdown.clone()
            )),
            supervise("sweeping", &shutdown, || sweeping::run(
                service.clone(),
                shutdown.clone()
            )),
        );
    })
}

/// Runs a loop in a task of its own and starts it again if it breaks down: messages must go on.
async fn supervise<F: Future<Output = ()> + Send + 'static>(
    name: &'static str,
    shutdown: &CancellationToken,
    start: impl Fn() -> F,
) {
    while let Err(error) = tokio::spawn(start()).await {
        tracing::error!(name, %error, "a part of the dispatcher broke down and starts again");
        if pause(RETRY, shutdown).await {
            return;
        }
    }
}

/// Frees what an earlier process had claimed: nobody else dispatches from this database now.
async fn free_leases(service: &Service, shutdown: &CancellationToken) {
    loop {
        match service.recover_leases().await {
            Ok(0) => return,
            Ok(count) => {
                tracing::info!(
                    count,
                    "messages that an earlier process had claimed are sent again"
                );
                return;
            }
            Err(error) => {
                tracing::error!(detail = ?error, "old claims can't be freed; trying again");
            }
        }
        if pause(RETRY, shutdown).await {
            return;
        }
    }
}

/// Tells the carrier what an earlier process handed over; new messages needn't wait for that.
async fn recover<C: Carrier>(
    service: Service,
    carrier: Arc<C>,
    started: Timestamp,
    shutdown: CancellationToken,
) {
    let mut after = None;
    while !shutdown.is_cancelled() {
        match service
            .outstanding(carrier.name(), started, after, OUTSTANDING_CHUNK)
            .await
        {
            Ok(found) => {
                let Some(last) = found.last() else { return };
                after = Some(last.id);
                carrier.expect_receipts(found);
            }
            Err(error) => {
                tracing::error!(detail = ?error, "what awaits receipts can't be read; trying again");
                pause(RETRY, &shutdown).await;
            }
        }
    }
}

/// Records receipts; the next ones are taken when these are durable.
async fn receive<C: Carrier>(service: Service, carrier: Arc<C>, shutdown: CancellationToken) {
    loop {
        let receipts = tokio::select! {
            receipts = carrier.receipts() => receipts,
            () = shutdown.cancelled() => return,
        };
        if !record(&service, receipts, &shutdown).await || pause(GATHER, &shutdown).await {
            return;
        }
    }
}

/// False when the process stops before the receipts could be recorded; a restart finds them again.
async fn record(service: &Service, receipts: Vec<Receipt>, shutdown: &CancellationToken) -> bool {
    while let Err(error) = service.record_receipts(receipts.clone()).await {
        tracing::error!(detail = ?error, "receipts can't be recorded; trying again");
        if pause(RETRY, shutdown).await {
            return false;
        }
    }
    true
}

/// Waits; true when the process is to stop.
async fn pause(time: Duration, shutdown: &CancellationToken) -> bool {
    tokio::time::timeout(time, shutdown.cancelled())
        .await
        .is_ok()
}
