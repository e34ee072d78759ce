//! The links between the pages of a list.

use leptos::prelude::*;

use super::filter::{newer, older};

/// Links to the newer and the older page of a list, as far as there are such pages; `None` where
/// there is one page. `way` is the way to this page, `next` the cursor of the page after it, and
/// `address` gives the address of the page at the end of a way.
pub fn pager(
    noun: &'static str,
    way: &str,
    next: Option<&str>,
    address: impl Fn(&str) -> String,
) -> Option<AnyView> {
    let newer = newer(way).map(|way| (address(way), way.is_empty()));
    let older = next.map(|next| address(&older(way, next)));
    // From the second page the newer page is the newest one.
    let newest = (newer.as_ref()).is_some_and(|(_, is_newest)| !is_newest);
    let newest = newest.then(|| address(""));
    let link = |href: String, rel: Option<&'static str>, word: &str| {
        view! {
            <a href=href rel=rel>
                {format!("{word} {noun}")}
            </a>
        }
    };
    (newer.is_some() || older.is_some()).then(|| {
        view! {
            <p class="pager">
                {newest.map(|href| link(href, None, "Newest"))}
                {newer.map(|(href, _)| link(href, Some("prev"), "Newer"))}
                {older.map(|href| link(href, Some("next"), "Older"))}
            </p>
        }
        .into_any()
    })
}
