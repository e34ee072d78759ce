//! Long pages in parts, with a navigation beside them.

use leptos::prelude::*;

/// A page's parts in two columns, with links to them at the side. On a narrow screen, the links are
/// above the parts.
#[component]
pub fn Parts(
    /// The name of the links for screen readers.
    label: &'static str,
    /// The ID and the name of each part.
    parts: Vec<(&'static str, &'static str)>,
    children: Children,
) -> impl IntoView {
    let links = parts.into_iter().map(|(id, name)| {
        // The router would scroll, but not move the focus.
        view! { <li><a href=format!("#{id}") rel="external">{name}</a></li> }
    });
    view! {
        <div class="parts">
            <nav class="parts-nav" aria-label=label><ul>{links.collect_view()}</ul></nav>
            <div class="parts-list">{children()}</div>
        </div>
    }
}
