//! The progress of a batch.

use domain::MessageStatus;
use domain::records::{BatchRecord, BatchStatus};
use leptos::prelude::*;

use super::grouped;

/// Renders the progress of a batch, as a bar and in words.
pub fn progress(batch: &BatchRecord) -> impl IntoView + use<> {
    let done = batch.counts.completed();
    let words = format!("{} of {} completed", grouped(done), grouped(batch.rows));
    view! {
        <span class="progress">
            <progress
                max=batch.rows.to_string()
                value=done.to_string()
                aria-label=format!("Progress of {}", batch.batchid)
            ></progress>
            <span class="figures">{words}</span>
        </span>
    }
}

/// Returns the progress of a batch for screen readers. The sentence changes with each quarter
/// rather than with each message, so that it isn't read out all the time.
pub fn spoken(batch: &BatchRecord) -> String {
    let done = batch.counts.completed();
    match batch.status {
        BatchStatus::Scheduled => "The batch waits for its time.".to_owned(),
        BatchStatus::Paused => "The batch is paused.".to_owned(),
        BatchStatus::Cancelled => format!(
            "The batch was cancelled: {} of {} messages.",
            grouped(batch.counts.get(MessageStatus::Cancelled)),
            grouped(batch.rows)
        ),
        BatchStatus::Done => format!(
            "The batch is done: {} of {} delivered.",
            grouped(batch.counts.get(MessageStatus::Delivered)),
            grouped(done)
        ),
        BatchStatus::Expanding | BatchStatus::Sending => {
            let quarters = done.saturating_mul(4) / batch.rows.max(1);
            format!("At least {} percent of the messages are completed.", quarters * 25)
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::MessageStatus;
    use domain::records::{BatchRecord, BatchStatus, StatusCounts};
    use domain::{BatchId, Money, Timestamp};

    use super::spoken;

    fn batch(status: BatchStatus, counts: StatusCounts) -> BatchRecord {
        BatchRecord {
            batchid: BatchId(1),
            requestid: None,
            rows: 8,
            pages: 8,
            cost: Money::from_micros(8),
            released: Money::ZERO,
            status,
            counts,
            created_at: Timestamp::from_unix_ms(0),
            send_at: None,
            done_at: None,
            pause_reason: None,
            test: false,
        }
    }

    #[test]
    fn progress_is_spoken_in_quarters() {
        for (delivered, failed, percent) in [(0, 0, 0), (1, 0, 0), (1, 1, 25), (4, 2, 75)] {
            let counts = StatusCounts::default()
                .with(MessageStatus::Queued, 8 - delivered - failed)
                .with(MessageStatus::Delivered, delivered)
                .with(MessageStatus::Failed, failed);
            assert_eq!(
                spoken(&batch(BatchStatus::Sending, counts)),
                format!("At least {percent} percent of the messages are completed.")
            );
        }
    }

    #[test]
    fn a_batch_that_is_done_says_how_many_were_delivered() {
        let counts = StatusCounts::default()
            .with(MessageStatus::Delivered, 5)
            .with(MessageStatus::Failed, 3);
        assert_eq!(
            spoken(&batch(BatchStatus::Done, counts)),
            "The batch is done: 5 of 8 delivered."
        );
    }
}
