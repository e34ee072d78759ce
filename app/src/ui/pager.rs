//! The links between the pages of a list.
//!
//! A `way` leads to a page of a list. It consists of the cursors of the second page up to that
//! page, joined by dots. The first page has an empty way.

use leptos::prelude::*;

/// The maximum number of cursors in a way. Older ones are dropped.
const PAGES_BACK: usize = 100;

/// Renders links to the newest, the newer and the older page of a list. Returns `None` if the list
/// has one page. `way` is the way to the current page, `next` is the cursor of the page after it,
/// and `address` returns the address of the page at the end of a way.
pub fn pager(
    noun: &'static str,
    way: &str,
    next: Option<&str>,
    address: impl Fn(&str) -> String,
) -> Option<AnyView> {
    let newer = newer(way).map(|way| (address(way), way.is_empty()));
    let older = next.map(|next| address(&older(way, next)));
    // On the second page, the newer page is the newest one.
    let newest = (newer.as_ref()).is_some_and(|(_, is_newest)| !is_newest);
    let newest = newest.then(|| address(""));
    let link = |href: String, rel: Option<&'static str>, word: &str| {
        view! { <a href=href rel=rel>{format!("{word} {noun}")}</a> }
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

/// Returns the current page's cursor, the last one of its way. Returns `None` on the first page.
#[cfg(feature = "ssr")]
pub fn last(way: &str) -> Option<&str> {
    way.rsplit('.').next().filter(|cursor| !cursor.is_empty())
}

/// Returns the way to the page after this one.
pub fn older(way: &str, next: &str) -> String {
    if way.is_empty() {
        return next.to_owned();
    }
    let way = if way.split('.').count() >= PAGES_BACK {
        way.split_once('.').map_or("", |(_, rest)| rest)
    } else {
        way
    };
    format!("{way}.{next}")
}

/// Returns the way to the page before this one, or `None` on the first page.
pub fn newer(way: &str) -> Option<&str> {
    let before = way.rsplit_once('.').map_or("", |(before, _)| before);
    (!way.is_empty()).then_some(before)
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::{PAGES_BACK, last, newer, older};

    #[test]
    fn the_way_to_a_page_leads_back() {
        let second = older("", "m_2");
        let third = older(&second, "m_3");
        assert_eq!((last(""), newer("")), (None, None));
        assert_eq!((last(&second), newer(&second)), (Some("m_2"), Some("")));
        assert_eq!((last(&third), newer(&third)), (Some("m_3"), Some("m_2")));
        let far = (0..1000).fold(String::new(), |way, page| older(&way, &format!("m_{page}")));
        assert_eq!(far.split('.').count(), PAGES_BACK);
        assert_eq!(last(&far), Some("m_999"));
    }
}
