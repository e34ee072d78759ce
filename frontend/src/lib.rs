//! The WebAssembly that the browser loads. It only starts crate `app`.

/// Hydrates the page that the server rendered.
#[wasm_bindgen::prelude::wasm_bindgen]
pub async fn hydrate() {
    console_error_panic_hook::set_once();
    app::hydrate().await;
}
