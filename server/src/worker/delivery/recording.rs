//! Stores what carriers answer and report.

use std::sync::Arc;

use domain::Transid;
use service::{Credit, Result, Service};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::free;
use crate::carrier::{CarrierConnection, CarrierReport};
use crate::worker::retry::RETRY;

/// Records until the connection is closed and has reported everything. The places that answers
/// freed are offered before the answers are stored, so that the turn which stores them claims the
/// next messages.
pub(super) async fn run(
    service: Service,
    carrier: String,
    connection: Arc<dyn CarrierConnection>,
    credit: Credit,
    open: watch::Receiver<bool>,
    shutdown: CancellationToken,
) {
    let free = || free(connection.as_ref(), *open.borrow());
    while let Some(report) = connection.report().await {
        credit.refresh(free);
        let results: Vec<Transid> = report.submitted.iter().map(|result| result.id).collect();
        let Some(taken) = record(&service, &carrier, &report, &shutdown).await else {
            // The carrier repeats what isn't acknowledged, and the leases end.
            continue;
        };
        connection.stored(&results, &taken, report.confirmation);
        credit.refresh(free);
    }
}

/// The messages that are stored as taken; `None` when the process stops before that.
async fn record(
    service: &Service,
    carrier: &str,
    report: &CarrierReport,
    shutdown: &CancellationToken,
) -> Option<Vec<Transid>> {
    let mut stored = Stored::default();
    loop {
        match store(service, carrier, report, &mut stored).await {
            Ok(()) => return stored.taken,
            Err(error) => {
                tracing::error!(detail = ?error, "a report can't be stored; trying again");
                if shutdown.is_cancelled() {
                    return None;
                }
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// What a try stored before it failed: the next one goes on from there.
#[derive(Default)]
struct Stored {
    /// The messages that are stored as taken, once results are.
    taken: Option<Vec<Transid>>,
    receipts: bool,
    carrier_receipts: bool,
}

/// Stores results and receipts; they go into one turn, in this order.
async fn store(
    service: &Service,
    carrier: &str,
    report: &CarrierReport,
    stored: &mut Stored,
) -> Result<()> {
    let submitted = async {
        if stored.taken.is_none() {
            let taken = service.record_submitted(carrier, report.submitted.clone());
            stored.taken = Some(taken.await?);
        }
        Ok(())
    };
    let receipts = async {
        if !stored.receipts && !report.receipts.is_empty() {
            service.record_receipts(report.receipts.clone()).await?;
        }
        stored.receipts = true;
        Ok(())
    };
    let carrier_receipts = async {
        if !stored.carrier_receipts && !report.carrier_receipts.is_empty() {
            let receipts = report.carrier_receipts.clone();
            service.record_carrier_receipts(carrier, receipts).await?;
        }
        stored.carrier_receipts = true;
        Ok(())
    };
    let (submitted, receipts, carrier_receipts) =
        tokio::join!(biased; submitted, receipts, carrier_receipts);
    submitted.and(receipts).and(carrier_receipts)
}
