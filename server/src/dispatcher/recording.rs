//! Stores what carriers answer and report.

use std::sync::Arc;
use std::time::Duration;

use domain::Transid;
use service::{Result, Service};
use tokio_util::sync::CancellationToken;

use super::RETRY;
use crate::carrier::{Line, News};

/// How long news gather before the next ones are recorded: each time costs a commit.
const GATHER: Duration = Duration::from_millis(10);

/// Records until the line is closed and has told everything.
pub(super) async fn run<L: Line>(
    service: Service,
    carrier: String,
    line: Arc<L>,
    shutdown: CancellationToken,
) {
    while let Some(news) = line.news().await {
        let answered: Vec<Transid> = news.submitted.iter().map(|result| result.id).collect();
        let Some(taken) = record(&service, &carrier, &news, &shutdown).await else {
            // What isn't acknowledged comes again, and claims whose results are lost end.
            continue;
        };
        line.stored(&answered, &taken, news.confirmation);
        tokio::time::sleep(GATHER).await;
    }
}

/// The messages that are stored as taken; `None` when the process stops before that.
async fn record(
    service: &Service,
    carrier: &str,
    news: &News,
    shutdown: &CancellationToken,
) -> Option<Vec<Transid>> {
    let mut stored = Stored::default();
    loop {
        match store(service, carrier, news, &mut stored).await {
            Ok(()) => return stored.taken,
            Err(error) => {
                tracing::error!(carrier, detail = ?error, "a carrier's news can't be recorded; trying again");
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
}

async fn store(service: &Service, carrier: &str, news: &News, stored: &mut Stored) -> Result<()> {
    if stored.taken.is_none() {
        let submitted = news.submitted.clone();
        stored.taken = Some(if submitted.is_empty() {
            Vec::new()
        } else {
            service.record_submitted(carrier, submitted).await?
        });
    }
    if !news.receipts.is_empty() && !stored.receipts {
        service.record_receipts(news.receipts.clone()).await?;
        stored.receipts = true;
    }
    if !news.carrier_receipts.is_empty() {
        let receipts = news.carrier_receipts.clone();
        service.record_carrier_receipts(carrier, receipts).await?;
    }
    Ok(())
}
