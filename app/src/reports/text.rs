//! A message's text, with marks that show how it is charged and sent.

use domain::Encoding;
use domain::message::runs::{Run, foreign_characters, runs, segments_in_gsm7};
use domain::message::{encoding, pages, segments};
use leptos::prelude::*;

use super::counted;

/// The number of characters outside GSM-7 that are named.
const NAMED_MAX: usize = 5;

/// Renders the text, marks the ends of its pages and segments, and explains how many there are.
#[component]
pub fn MessageText(text: String) -> impl IntoView {
    let lines = described(&text);
    let runs: Vec<_> = runs(&text).into_iter().map(run).collect();
    view! {
        <blockquote class="sms" dir="auto">{runs}</blockquote>
        <ul class="fine">
            {lines.into_iter().map(|line| view! { <li>{line}</li> }).collect_view()}
        </ul>
    }
}

/// Says why a message has no text. `days` is how many days texts are kept, or 0.
pub fn erased(number: &str, days: i64) -> String {
    // An erased number has no digits. A masked one has three.
    match days {
        1.. if number.contains(|c: char| c.is_ascii_digit()) => {
            format!("The text was erased after {}.", counted(days, "day"))
        }
        _ => "The text was erased.".to_owned(),
    }
}

/// Renders the text of a message in a table.
pub fn in_table(text: &str) -> AnyView {
    match text {
        "" => view! { <span class="fine">"erased"</span> }.into_any(),
        text => view! { <span class="message-text">{text.to_owned()}</span> }.into_any(),
    }
}

/// Renders a run, and a mark if a page or a segment ends there. The style sheet writes the words of
/// the mark. They aren't part of the text, so they aren't copied with it.
fn run(run: Run<'_>) -> impl IntoView + use<> {
    let text = run.text.to_owned();
    let text = if run.foreign { view! { <mark>{text}</mark> }.into_any() } else { text.into_any() };
    let ends = [("page", run.ends_page), ("segment", run.ends_segment)];
    let marks = ends.map(|(noun, number)| {
        number.map(|number| {
            let words = format!("{noun} {number} ends");
            view! { <span class=format!("cut cut-{noun}") data-cut=words></span> }
        })
    });
    (text, Vec::from(marks))
}

/// Formats a count with its noun.
pub fn count(n: usize, noun: &str) -> String {
    counted(i64::try_from(n).unwrap_or(i64::MAX), noun)
}

/// Returns sentences that say how the text's pages and segments are counted.
fn described(text: &str) -> Vec<String> {
    let chars = count(text.chars().count(), "character");
    let (pages, segments) = (count(pages(text), "page"), segments(text));
    let in_segments = count(segments, "segment");
    let mut lines =
        vec![format!("{chars}, {pages}: a page has up to 160 characters, and you pay per page.")];
    if encoding(text) == Encoding::Gsm7 {
        lines.push(format!(
            "{in_segments} in GSM-7: a text is sent in segments. A segment has 160 places, or up \
             to 153 if there are several segments. The characters ^ {{ }} \\ [ ] ~ | and € take \
             two places."
        ));
        return lines;
    }
    let found = foreign_characters(text);
    let mut named: Vec<_> = (found.iter().take(NAMED_MAX)).map(|c| named(*c)).collect();
    if found.len() > NAMED_MAX {
        named.push(count(found.len() - NAMED_MAX, "other character"));
    }
    lines.push(format!(
        "{in_segments} in UCS-2: a text is sent in segments. A segment has 70 places, or up to 67 \
         if there are several segments. Most emoji take two places."
    ));
    let named = match named.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => named.concat(),
    };
    let (are, them) = if found.len() == 1 { ("isn't", "it") } else { ("aren't", "them") };
    let plain = segments_in_gsm7(text);
    let is_all = text.chars().all(|c| found.contains(&c));
    let without = (plain < segments && !is_all).then(|| {
        let plain = count(plain, "segment");
        format!(" Without {them} the text would have {plain}.")
    });
    lines.push(format!(
        "UCS-2 is used because {} {are} in GSM-7.{}",
        named,
        without.unwrap_or_default()
    ));
    lines
}

/// Describes a character. An invisible character, or one that changes the direction of the text, is
/// given only by its code point.
fn named(c: char) -> String {
    let code = u32::from(c);
    let turns = matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}' | '\u{feff}');
    if turns || c.is_control() || c.is_whitespace() {
        format!("U+{code:04X}")
    } else {
        format!("“{c}” (U+{code:04X})")
    }
}

#[cfg(test)]
mod tests {
    use super::{described, erased};

    #[test]
    fn an_erased_text_says_after_how_many_days_unless_it_was_erased_on_request() {
        for (number, days, said) in [
            ("57000001", 30, "The text was erased after 30 days."),
            ("•••••001", 30, "The text was erased after 30 days."),
            ("••••••••", 30, "The text was erased."),
            ("57000001", 0, "The text was erased."),
        ] {
            assert_eq!(erased(number, days), said, "{number} {days}");
        }
    }

    #[test]
    fn a_text_says_by_what_it_is_counted() {
        let plain = described(&"a".repeat(161));
        assert_eq!(plain.len(), 2);
        assert!(plain[0].starts_with("161 characters, 2 pages:"), "{plain:?}");
        assert!(plain[1].starts_with("2 segments in GSM-7:"), "{plain:?}");
        let curly = described(&format!("’{}", "a".repeat(99)));
        assert!(curly[1].starts_with("2 segments in UCS-2:"), "{curly:?}");
        assert_eq!(
            curly[2],
            "UCS-2 is used because “’” (U+2019) isn't in GSM-7. Without it the text would have \
             1 segment."
        );
        let many = described("абвгдежз");
        assert!(many[2].contains("(U+0434) and 3 other characters aren't"), "{many:?}");
    }
}
