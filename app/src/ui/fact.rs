//! The entries of a page's list of facts.

use leptos::prelude::*;

/// A fact in a page's list of facts (`<dl class="facts">`): its term and its value.
#[component]
pub fn Fact(
    term: &'static str,
    /// The class of the value: `figures` or `key`.
    #[prop(optional)]
    class: Option<&'static str>,
    children: Children,
) -> impl IntoView {
    view! {
        <div>
            <dt>{term}</dt>
            <dd class=class>{children()}</dd>
        </div>
    }
}
