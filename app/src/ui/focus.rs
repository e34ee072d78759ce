//! Moves the focus to the page's content when another page opens, or when the focused element
//! disappears. The keyboard and screen readers continue from there.

use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{FocusOptions, HtmlElement};

/// Focuses the page's content without scrolling.
pub fn focus_content() {
    let Some(main) = document().get_element_by_id("main") else {
        return;
    };
    let options = FocusOptions::new();
    options.set_prevent_scroll(true);
    let main = main.unchecked_into::<HtmlElement>();
    let _ = main.focus_with_options(&options);
}

/// Focuses the page's content if no element has the focus.
pub fn keep_focus() {
    let focused = document().active_element();
    if focused.is_none_or(|element| element.tag_name() == "BODY") {
        focus_content();
    }
}
