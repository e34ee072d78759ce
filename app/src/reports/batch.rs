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
    /// For who listens rather than looks: it changes a few times in a batch's life, not with each message.
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
    follow::follow(&format!("{address}/events"), live);
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

#[cfg(feature = "hydrate")]
mod follow {
    use leptos::prelude::*;
    use leptos::wasm_bindgen::JsCast as _;
    use leptos::wasm_bindgen::closure::Closure;
    use send_wrapper::SendWrapper;
    use web_sys::{EventSource, MessageEvent};

    use super::LiveBatch;

    /// Shows what the server tells about a batch, until its last word or until the page is left.
    pub fn follow(address: &str, live: RwSignal<LiveBatch>) {
        if !live.with_untracked(|batch| batch.open) {
            return;
        }
        let Ok(source) = EventSource::new(address) else {
            return;
        };
        let told = {
            let source = source.clone();
            Closure::<dyn Fn(MessageEvent)>::new(move |event: MessageEvent| {
                let text = event.data().as_string().unwrap_or_default();
                let Ok(batch) = serde_json::from_str::<LiveBatch>(&text) else {
                    return;
                };
                if !batch.open {
                    // It would ask again otherwise.
                    source.close();
                }
                live.set(batch);
            })
        };
        source.set_onmessage(Some(told.as_ref().unchecked_ref()));
        let held = SendWrapper::new((source, told));
        on_cleanup(move || held.0.close());
    }
}
