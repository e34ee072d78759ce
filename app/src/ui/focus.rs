//! Where the focus goes when another page is shown, or when what had it is gone: to the page's
//! content, from where the keyboard goes on and screen readers read.

use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{FocusOptions, HtmlElement};

/// Gives the focus to the page's content, and leaves the page where it is scrolled to.
pub fn focus_content() {
    let Some(main) = document().get_element_by_id("main") else {
        return;
    };
    let options = FocusOptions::new();
    options.set_prevent_scroll(true);
    let main = main.unchecked_into::<HtmlElement>();
    let _ = main.focus_with_options(&options);
}

/// Gives the focus to the page's content when what had it is gone.
pub fn keep_focus() {
    let focused = document().active_element();
    if focused.is_none_or(|element| element.tag_name() == "BODY") {
        focus_content();
    }
}
