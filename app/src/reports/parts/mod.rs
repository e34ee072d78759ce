//! What the server alone renders of the reports, which is nearly all: nothing in it waits for a
//! click but links and a plain form, and the browser needn't load what only draws.

mod axis;
mod batch;
mod batches;
mod chart;
mod days;
mod filters;
mod message;
mod messages;
mod words;

pub use batch::{facts, spoken};
pub use batches::Batches;
pub use chart::Chart;
pub use filters::Filters;
pub use message::message;
pub use messages::Messages;

use domain::MessageStatus;
use domain::records::{BatchRecord, StatusCounts};
use leptos::prelude::*;

/// A count with its noun.
fn counted(count: i64, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

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
            <span class="figures">{format!("{done} of {} final", batch.rows)}</span>
        </span>
    }
}
