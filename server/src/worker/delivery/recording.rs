//! Stores the responses, receipts and inbound messages of carriers.

use std::sync::Arc;

use domain::Transid;
use service::{Credit, Result, Service};
use tokio::sync::watch;

use super::free;
use crate::carrier::{CarrierConnection, CarrierReport};
use crate::worker::context::{Context, RETRY};

/// Records until the connection is closed and has reported everything. Slots that responses have
/// freed are offered before the responses are stored. So the commit group that stores the responses
/// also claims the next messages.
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
            // Nothing is lost: the carrier repeats the receipts that aren't acknowledged, and the
            // leases of the messages end.
            continue;
        };
        connection.stored(report, &taken);
        credit.refresh(free);
    }
}

/// Returns the messages that are stored as accepted by the carrier, or `None` if the process stops
/// first.
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

/// Stores results and receipts in one commit group, in this order, and inbound messages in another
/// transaction. Stored receipts and messages are removed from the report, and `taken` is set once
/// the results are stored. So after a failure, the next attempt stores only the rest.
async fn store(
    service: &Service,
    carrier: &str,
    report: &mut CarrierReport,
    taken: &mut Option<Vec<Transid>>,
) -> Result<()> {
    let results = &report.submitted;
    let submitted = async {
        if taken.is_none() {
            *taken = Some(service.delivery().record_submitted(carrier, results.clone()).await?);
        }
        Ok(())
    };
    let own = &mut report.receipts;
    let receipts = async {
        if !own.is_empty() {
            service.delivery().record_receipts(own.clone()).await?;
            own.clear();
        }
        Ok(())
    };
    let carriers = &mut report.carrier_receipts;
    let carrier_receipts = async {
        if !carriers.is_empty() {
            let delivery = service.delivery();
            let recording = delivery.record_carrier_receipts(carrier, carriers.clone());
            recording.await?;
            carriers.clear();
        }
        Ok(())
    };
    let messages = &mut report.inbound;
    let inbound = async {
        if !messages.is_empty() {
            service.delivery().record_inbound(carrier, messages.clone()).await?;
            messages.clear();
        }
        Ok(())
    };
    let (submitted, receipts, carrier_receipts, inbound) =
        tokio::join!(biased; submitted, receipts, carrier_receipts, inbound);
    submitted.and(receipts).and(carrier_receipts).and(inbound)
}
