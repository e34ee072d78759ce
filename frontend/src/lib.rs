//! What the browser loads. It has no logic of its own.

/// Takes over the page that the server rendered.
#[wasm_bindgen::prelude::wasm_bindgen]
pub fn hydrate() {
    console_error_panic_hook::set_once();
    leptos::mount::hydrate_body(app::App);
}
