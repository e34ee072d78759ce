//! The entries of a page's list of facts.

use leptos::prelude::*;

/// An entry of a list of facts (`<dl class="facts">`): a term and its value.
#[component]
pub fn Fact(
    term: &'static str,
    /// The value's class: `figures` or `key`.
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

/// A fact that is left out if it has no value.
pub fn optional_fact<V: IntoView + 'static>(
    term: &'static str,
    class: &'static str,
    value: Option<V>,
) -> impl IntoView {
    value.map(|value| view! { <Fact term class>{value}</Fact> })
}
