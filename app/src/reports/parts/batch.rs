//! What changes on a batch's page while it is being sent.

use domain::MessageStatus;
use domain::records::{BatchRecord, BatchStatus, StatusCounts};
use leptos::prelude::*;

use super::{finished, progress};
use crate::ui::{Moment, Rendered, StateMark};

/// A batch's readings, and its messages by status.
pub fn facts(batch: &BatchRecord, currency: &str) -> Rendered {
    let requestid = batch.requestid.clone().map(|requestid| {
        view! {
            <div>
                <dt>"Request id"</dt>
                <dd class="key">{requestid}</dd>
            </div>
        }
    });
    let done = batch.done_at.map(|at| {
        view! {
            <div>
                <dt>"Done (UTC)"</dt>
                <dd class="figures">
                    <Moment at/>
                </dd>
            </div>
        }
    });
    Rendered::of(view! {
        <dl class="facts">
            <div>
                <dt>"Status"</dt>
                <dd>
                    <StateMark tone=batch.status word=batch.status.as_str()/>
                </dd>
            </div>
            <div>
                <dt>"Progress"</dt>
                <dd>{progress(batch)}</dd>
            </div>
            <div>
                <dt>"Cost"</dt>
                <dd class="figures">{format!("{} {currency}", batch.cost)}</dd>
            </div>
            <div>
                <dt>"Rows"</dt>
                <dd class="figures">{batch.rows.to_string()}</dd>
            </div>
            <div>
                <dt>"Pages"</dt>
                <dd class="figures">{batch.pages.to_string()}</dd>
            </div>
            <div>
                <dt>"Uploaded with"</dt>
                <dd>{if batch.test { "the test key (to nobody)" } else { "the API key" }}</dd>
            </div>
            <div>
                <dt>"Created (UTC)"</dt>
                <dd class="figures">
                    <Moment at=batch.created_at/>
                </dd>
            </div>
            {done}
            <div>
                <dt>"Batchid"</dt>
                <dd class="key">{batch.batchid.to_string()}</dd>
            </div>
            {requestid}
        </dl>
        {(batch.status == BatchStatus::Expanding)
            .then(|| {
                view! { <p class="fine">"Rows of the file are still becoming messages."</p> }
            })}
        <h2>"Messages by status"</h2>
        {counts(&batch.counts)}
    })
}

/// How a batch is said to stand: in quarters, so that it isn't said over and over.
pub fn spoken(batch: &BatchRecord) -> String {
    let done = finished(&batch.counts);
    match batch.status {
        BatchStatus::Done => format!(
            "The batch is done: {} of {done} delivered.",
            batch.counts.delivered
        ),
        BatchStatus::Expanding | BatchStatus::Sending => {
            let quarters = done.saturating_mul(4) / batch.rows.max(1);
            format!(
                "At least {} percent of the messages are final.",
                quarters * 25
            )
        }
    }
}

fn counts(counts: &StatusCounts) -> impl IntoView + use<> {
    let counts = *counts;
    let row = move |status: MessageStatus| {
        view! {
            <tr>
                <th scope="row">
                    <StateMark tone=status word=status.as_str()/>
                </th>
                <td class="amount">{counts.get(status).to_string()}</td>
            </tr>
        }
    };
    view! {
        <table class="narrow">
            <thead>
                <tr>
                    <th scope="col">"Status"</th>
                    <th scope="col" class="amount">"Messages"</th>
                </tr>
            </thead>
            <tbody>{MessageStatus::ALL.into_iter().map(row).collect_view()}</tbody>
        </table>
    }
}
