//! Keeps an open page up to date with server-sent events.

use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast as _;
use leptos::wasm_bindgen::closure::Closure;
use send_wrapper::SendWrapper;
use serde::de::DeserializeOwned;
use web_sys::{EventSource, MessageEvent};

/// Sets `live` to each state that the server sends, until the last one or until the user leaves the
/// page. `goes_on` returns whether another state may follow.
pub fn follow<T>(address: &str, live: RwSignal<T>, goes_on: fn(&T) -> bool)
where
    T: DeserializeOwned + Send + Sync + 'static,
{
    if live.with_untracked(goes_on) {
        follow_by(address, goes_on, move |state| live.set(state));
    }
}

/// Like [`follow`], but calls `take` with each state.
pub fn follow_by<T>(address: &str, goes_on: fn(&T) -> bool, take: impl Fn(T) + 'static)
where
    T: DeserializeOwned + 'static,
{
    let Ok(source) = EventSource::new(address) else {
        return;
    };
    let told = {
        let source = source.clone();
        Closure::<dyn Fn(MessageEvent)>::new(move |event: MessageEvent| {
            let text = event.data().as_string().unwrap_or_default();
            let Ok(state) = serde_json::from_str::<T>(&text) else {
                return;
            };
            if !goes_on(&state) {
                // An open `EventSource` would reconnect when the server ends the response.
                source.close();
            }
            take(state);
        })
    };
    source.set_onmessage(Some(told.as_ref().unchecked_ref()));
    let held = SendWrapper::new((source, told));
    on_cleanup(move || held.0.close());
}
