//! What of the reports the server alone renders: batches and the chart.

mod axis;
mod batch;
mod batches;
mod chart;
mod days;

pub use batch::{facts, spoken};
pub use batches::Batches;
pub use chart::Chart;

use domain::MessageStatus;
use domain::records::{BatchRecord, StatusCounts};
use leptos::prelude::*;

/// How many of these messages have met their end.
fn finished(counts: &StatusCounts) -> i64 {
    let finals = MessageStatus::ALL
        .into_iter()
        .filter(|status| status.is_final());
    finals.map(|status| counts.get(status)).sum()
}

/// How far a batch is, as a bar and in words.
fn progress(batch: &BatchRecord) -> impl IntoView + use<> {
    let done = finished(&batch.counts);
    view! {
        <span class="progress">
            <progress
                max=batch.rows.to_string()
                value=done.to_string()
                aria-label=format!("Progress of {}", batch.batchid)
            ></progress>
            <span class="figures">{format!("{done} of {}", batch.rows)}</span>
        </span>
    }
}
