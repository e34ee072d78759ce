//! Parts of the page's address, and links to other parts of a page or a list.

use std::fmt::Write as _;

use leptos::prelude::*;
use leptos_router::hooks::{use_params_map, use_query_map};
use leptos_router::location::Url;

/// Returns a query parameter of the page's address.
pub fn parameter(name: &'static str) -> Memo<Option<String>> {
    let query = use_query_map();
    Memo::new(move |_| query.with(|query| query.get(name)))
}

/// Returns the part of the page's path that has this name in the route.
pub fn in_path(name: &'static str) -> Memo<String> {
    let params = use_params_map();
    Memo::new(move |_| params.with(|params| params.get(name)).unwrap_or_default())
}

/// Returns the address with this path and with those query parameters that aren't empty.
pub fn address<'a>(path: &str, parameters: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut address = path.to_owned();
    let mut separator = '?';
    for (name, text) in parameters.into_iter().filter(|(_, text)| !text.is_empty()) {
        // These characters need no escape (RFC 3986, section 2.3), and dates stay readable.
        let text = Url::escape(text).replace("%2D", "-").replace("%2E", ".").replace("%5F", "_");
        // Writing to a String can't fail.
        let _ = write!(address, "{separator}{name}={text}");
        separator = '&';
    }
    address
}

/// Renders the link to the next page of a list, if there is one. `address` is the address of the
/// list.
pub fn next_link(
    address: &str,
    cursor: Option<String>,
    label: &'static str,
) -> impl IntoView + use<> {
    cursor.map(|cursor| {
        let separator = if address.contains('?') { '&' } else { '?' };
        let href = format!("{address}{separator}cursor={}", Url::escape(&cursor));
        view! { <p><a href=href rel="next">{label}</a></p> }
    })
}

/// Renders links to the parts of a page. `label` is the name of these links for screen readers.
/// Each of `links` has an address, a text, and whether it leads to the part that is shown.
pub fn tabs(
    label: &'static str,
    links: impl IntoIterator<Item = (String, &'static str, bool)>,
) -> impl IntoView {
    let links: Vec<_> = links
        .into_iter()
        .map(|(href, text, is_shown)| {
            let current = is_shown.then_some("page");
            view! { <li><a href=href aria-current=current>{text}</a></li> }
        })
        .collect();
    view! { <nav class="tabs" aria-label=label><ul>{links}</ul></nav> }
}

/// Declares the query of a page's address. A parameter that the address lacks is an empty text.
macro_rules! query {
    ($(#[$about:meta])* pub struct $name:ident {
        $($(#[$about_field:meta])* pub $field:ident,)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $name {
            $($(#[$about_field])* pub $field: String,)+
        }

        impl $name {
            /// Reads the query. `parameter` returns the value of the parameter with a name.
            pub fn read(parameter: impl Fn(&str) -> Option<String>) -> Self {
                let text = |name| parameter(name).unwrap_or_default().trim().to_owned();
                Self { $($field: text(stringify!($field)),)+ }
            }
        }
    };
}
pub(crate) use query;
