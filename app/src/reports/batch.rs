//! What a batch's page shows; it follows the batch while that is being sent.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use super::filter::CSV_PATH;
use crate::ui::Rendered;
#[cfg(feature = "ssr")]
use {
    super::parts,
    domain::records::{BatchRecord, BatchStatus},
};

/// Where a batch's changes are told, as server-sent events; each is a [`LiveBatch`] in JSON.
pub const BATCH_EVENTS_PATH: &str = "/reports/{batchid}/events";

/// A batch as its page shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveBatch {
    pub batchid: String,
    /// False once nothing will change any more.
    pub open: bool,
    /// For who listens rather than looks: it changes a few times in a batch's life, not with each
    /// message.
    pub spoken: String,
    pub facts: Rendered,
}

#[cfg(feature = "ssr")]
impl LiveBatch {
    #[must_use]
    pub fn of(batch: &BatchRecord, currency: &str) -> Self {
        Self {
            batchid: batch.batchid.to_string(),
            open: batch.status != BatchStatus::Done,
            spoken: parts::spoken(batch),
            facts: parts::facts(batch, currency),
        }
    }
}

#[component]
pub fn BatchContent(batch: LiveBatch) -> impl IntoView {
    let address = format!("/reports/{}", batch.batchid);
    let messages = format!("/reports?batchid={}", batch.batchid);
    let download = format!("{CSV_PATH}?batchid={}", batch.batchid);
    let live = RwSignal::new(batch);
    #[cfg(feature = "hydrate")]
    crate::ui::follow(&format!("{address}/events"), live, |batch| batch.open);
    view! {
        <div class="visually-hidden" role="status">
            {move || live.with(|batch| batch.spoken.clone())}
        </div>
        <div inner_html=move || live.with(|batch| batch.facts.html())></div>
        <p class="buttons">
            <a class="button" href=messages>
                "Messages of this batch"
            </a>
            // The router leaves downloads and reloads to the browser.
            <a class="button" href=download download="messages.csv" rel="external">
                "Download CSV"
            </a>
            {move || {
                live.with(|batch| batch.open)
                    .then(|| {
                        view! {
                            <a class="button button-quiet" href=address.clone() rel="external">
                                "Reload"
                            </a>
                        }
                    })
            }}
        </p>
    }
}
