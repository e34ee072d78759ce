//! Stores what carriers answer and report.

use std::sync::Arc;

use domain::Transid;
use service::{Credit, Result, Service};
use tokio::sync::watch;

use super::free;
use crate::carrier::{CarrierConnection, CarrierReport};
use crate::worker::context::{Context, RETRY};

/// Records until the connection is closed and has reported everything. The places that answers
/// freed are offered before the answers are stored, so that the commit group which stores them
/// claims the next messages.
pub(super) async fn run(
    context: Context,
    carrier: String,
    connection: Arc<dyn CarrierConnection>,
    credit: Credit,
    open: watch::Receiver<bool>,
) {
    let free = || free(connection.as_ref(), *open.borrow());
    while let Some(mut report) = connection.report().await {
        credit.refresh(free);
        let Some(taken) = record(&context, &carrier, &mut report).await else {
            // The carrier repeats what isn't acknowledged, and the leases end.
            continue;
        };
        connection.stored(report, &taken);
        credit.refresh(free);
    }
}

/// The messages that are stored as taken; `None` when the process stops before that.
async fn record(
    context: &Context,
    carrier: &str,
    report: &mut CarrierReport,
) -> Option<Vec<Transid>> {
    let mut taken = None;
    loop {
        match store(&context.service, carrier, report, &mut taken).await {
            Ok(()) => return taken,
            Err(error) => {
                tracing::error!(detail = ?error, "a report can't be stored; trying again");
                if context.shutdown.is_cancelled() {
                    return None;
                }
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Stores results and receipts; they go into one commit group, in this order. Receipts leave the
/// report when they are stored, and `taken` is set when the results are: after a failure the next
/// attempt goes on from there.
async fn store(
    service: &Service,
    carrier: &str,
    report: &mut CarrierReport,
    taken: &mut Option<Vec<Transid>>,
) -> Result<()> {
    let results = &report.submitted;
    let submitted = async {
        if taken.is_none() {
            *taken = Some(service.record_submitted(carrier, results.clone()).await?);
        }
        Ok(())
    };
    let own = &mut report.receipts;
    let receipts = async {
        if !own.is_empty() {
            service.record_receipts(own.clone()).await?;
            own.clear();
        }
        Ok(())
    };
    let carriers = &mut report.carrier_receipts;
    let carrier_receipts = async {
        if !carriers.is_empty() {
            let recording = service.record_carrier_receipts(carrier, carriers.clone());
            recording.await?;
            carriers.clear();
        }
        Ok(())
    };
    let (submitted, receipts, carrier_receipts) =
        tokio::join!(biased; submitted, receipts, carrier_receipts);
    submitted.and(receipts).and(carrier_receipts)
}
