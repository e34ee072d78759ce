//! How to reach support, and the operator's links, below every page. Only the server renders it, so
//! no page has code for it.

use leptos::prelude::*;

/// The part of every page below its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footer {
    /// How customers reach support, as lines of text.
    pub support_contact: Option<String>,
    /// The names and URLs of links.
    pub links: Vec<(&'static str, String)>,
}

impl Footer {
    /// Renders the footer. Nothing is rendered where the operator has set nothing.
    pub fn view(&self) -> impl IntoView + use<> {
        let contact = self.support_contact.as_deref().map(contact);
        let links = self.links.clone().into_iter().map(|(name, url)| {
            view! { " "<a href=url rel="external">{name}</a> }
        });
        let links = links.collect_view();
        let is_empty = contact.is_none() && self.links.is_empty();
        (!is_empty).then(|| {
            view! {
                <aside class="foot" aria-label="Support and legal">
                    {contact.map(|contact| view! { <p>"Support: "{contact}</p> })}
                    {(!links.is_empty()).then(|| view! { <p>{links}</p> })}
                </aside>
            }
        })
    }
}

/// Renders how to reach support. Email addresses and URLs become links.
fn contact(text: &str) -> impl IntoView + use<> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    for word in text.split_inclusive(char::is_whitespace) {
        let (bare, end) = word.split_at(word.trim_end_matches(ends_word).len());
        if let Some(target) = target(bare) {
            let before = std::mem::take(&mut plain);
            let bare = bare.to_owned();
            pieces.push(view! { {before}<a href=target rel="external">{bare}</a> });
        } else {
            plain.push_str(bare);
        }
        plain.push_str(&end.replace('\n', " · "));
    }
    (pieces, plain)
}

/// Returns the target of the link that a word becomes.
fn target(word: &str) -> Option<String> {
    if word.starts_with("https://") || word.starts_with("http://") {
        return Some(word.to_owned());
    }
    domain::Email::parse(word).is_ok().then(|| format!("mailto:{word}"))
}

fn ends_word(c: char) -> bool {
    c.is_whitespace() || matches!(c, ',' | ';' | '.' | ')')
}
