//! Stores the responses, receipts and inbound messages of carriers.

use std::sync::Arc;

use domain::Transid;
use domain::support::ReceiptKind;
use service::{Credit, Result, Service};
use tokio::sync::{mpsc, watch};

use super::free;
use crate::carrier::{CarrierConnection, CarrierReport, InboundReport};
use crate::worker::context::{Context, RETRY};

/// The maximum number of reports whose inbound messages one transaction stores.
const INBOUND_MAX: usize = 100;

/// Records until the connection is closed and has reported everything. Inbound messages are stored
/// by a loop of their own, so that they delay no response if they can't be stored.
pub(super) async fn run(
    context: Context,
    carrier: String,
    connection: Arc<dyn CarrierConnection>,
    credit: Credit,
    open: watch::Receiver<bool>,
) {
    // Bounded by the carrier's window of unacknowledged deliveries.
    let (inbound, arrived) = mpsc::unbounded_channel();
    tokio::join!(
        run_reports(&context, &carrier, connection.as_ref(), (&credit, &open), inbound),
        run_inbound(&context, &carrier, connection.as_ref(), arrived),
    );
}

/// Stores responses and receipts. Slots that responses have freed are offered before the responses
/// are stored. So the commit group that stores the responses also claims the next messages.
async fn run_reports(
    context: &Context,
    carrier: &str,
    connection: &dyn CarrierConnection,
    (credit, open): (&Credit, &watch::Receiver<bool>),
    inbound: mpsc::UnboundedSender<InboundReport>,
) {
    let free = || free(connection, *open.borrow());
    while let Some(mut report) = connection.report().await {
        let tests = context.trials.take(&mut report);
        context.service.delivery().expect_test_receipts(carrier, tests);
        credit.refresh(free);
        let messages = std::mem::take(&mut report.inbound);
        if !messages.messages.is_empty() {
            // The receiver lives as long as the sender.
            let _ = inbound.send(messages);
        }
        let Some(taken) = record(context, carrier, &mut report).await else {
            // The carrier repeats receipts that aren't acknowledged. The messages stay claimed
            // until their leases end.
            continue;
        };
        let raw_receipts = std::mem::take(&mut report.raw_receipts);
        connection.stored(report, &taken);
        context.service.delivery().keep_raw_receipts(carrier, raw_receipts);
        credit.refresh(free);
    }
}

/// Stores inbound messages in the order in which they came, and acknowledges them.
async fn run_inbound(
    context: &Context,
    carrier: &str,
    connection: &dyn CarrierConnection,
    mut arrived: mpsc::UnboundedReceiver<InboundReport>,
) {
    let mut reports = Vec::new();
    while arrived.recv_many(&mut reports, INBOUND_MAX).await > 0 {
        let (mut messages, mut deliveries) = (Vec::new(), Vec::new());
        for report in reports.drain(..) {
            messages.extend(report.messages);
            deliveries.extend(report.deliveries);
        }
        let delivery = context.service.delivery();
        while let Err(error) = delivery.record_inbound(carrier, messages.clone()).await {
            tracing::error!(carrier, detail = ?error, "inbound messages can't be stored; trying \
                again");
            if context.pause(RETRY).await {
                // The carrier repeats them.
                return;
            }
        }
        connection.acknowledge(deliveries);
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

/// Passes results and receipts to the service together, in this order, so that usually one commit
/// group stores them. Removes stored receipts from the report, and sets `taken` once the results
/// are stored. So after a failure, the next attempt stores only the rest.
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
    let early = &mut report.early;
    let early_ids = async {
        if !early.is_empty() {
            service.delivery().record_early_ids(carrier, early.clone()).await?;
            early.clear();
        }
        Ok(())
    };
    let (own, answered) = (&mut report.receipts, &mut report.answered);
    let receipts = async {
        if !own.is_empty() {
            service.delivery().record_receipts(own.clone()).await?;
            own.clear();
        }
        while let Some(last) = answered.last() {
            service.delivery().record_test_answer(last.clone()).await?;
            answered.pop();
        }
        Ok(())
    };
    let (carriers, raw) = (&mut report.carrier_receipts, &mut report.raw_receipts);
    let carrier_receipts = async {
        if !carriers.is_empty() {
            let delivery = service.delivery();
            let recording = delivery.record_carrier_receipts(carrier, carriers.clone());
            let matches = recording.await?;
            let finals = raw.iter_mut().filter(|raw| raw.kind == ReceiptKind::Final);
            finals.zip(matches).for_each(|(raw, found)| raw.message_id = found.message());
            carriers.clear();
        }
        Ok(())
    };
    let (submitted, receipts, carrier_receipts, early_ids) =
        tokio::join!(biased; submitted, receipts, carrier_receipts, early_ids);
    let stored: Result<()> = submitted.and(receipts).and(carrier_receipts).and(early_ids);
    stored?;
    service.delivery().record_unknown_states(carrier, &mut report.raw_receipts).await
}
