//! A text as a person looks at it: where its pages and segments end, and which characters keep it
//! out of GSM-7.

use super::parts::headed;
use super::{Encoding, PAGE_CHARS, cuts, gsm7_septets};

/// Characters of a text that follow each other and are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run<'a> {
    pub text: &'a str,
    /// Whether the characters aren't in GSM-7, so that the whole text is sent in UCS-2.
    pub foreign: bool,
    /// The number, from 1, of the segment that ends here; `None` at the end of the text.
    pub ends_segment: Option<usize>,
    /// The number, from 1, of the page that ends here; `None` at the end of the text.
    pub ends_page: Option<usize>,
}

/// The runs of a text, in their order: together they are the text.
pub fn runs(text: &str) -> Vec<Run<'_>> {
    let mut segments = segment_ends(text).into_iter().zip(1..).peekable();
    let mut runs = Vec::new();
    let mut begin = 0;
    let mut chars = text.char_indices().zip(1_usize..).peekable();
    while let Some(((_, c), count)) = chars.next() {
        let Some(((next_at, next), _)) = chars.peek().copied() else {
            runs.push(Run {
                text: &text[begin..],
                foreign: is_foreign(c),
                ends_segment: None,
                ends_page: None,
            });
            break;
        };
        let ends_segment = segments.next_if(|(end, _)| *end == next_at);
        let ends_page = count
            .is_multiple_of(PAGE_CHARS)
            .then_some(count / PAGE_CHARS);
        if ends_segment.is_some() || ends_page.is_some() || is_foreign(c) != is_foreign(next) {
            runs.push(Run {
                text: &text[begin..next_at],
                foreign: is_foreign(c),
                ends_segment: ends_segment.map(|(_, number)| number),
                ends_page,
            });
            begin = next_at;
        }
    }
    runs
}

/// The characters that keep a text out of GSM-7, each once, in the order in which they come first.
pub fn foreign_characters(text: &str) -> Vec<char> {
    let mut found = Vec::new();
    for c in text.chars().filter(|c| is_foreign(*c)) {
        if !found.contains(&c) {
            found.push(c);
        }
    }
    found
}

/// How many segments a text would have if all of it were in GSM-7: with each foreign character in
/// the place of one of the basic table.
pub fn segments_in_gsm7(text: &str) -> usize {
    let plain: String = text
        .chars()
        .map(|c| if is_foreign(c) { '?' } else { c })
        .collect();
    cuts(&plain, Encoding::Gsm7, 0).count()
}

fn is_foreign(c: char) -> bool {
    gsm7_septets(c).is_none()
}

/// Where each segment ends, in bytes: that is where the parts end that carriers are usually handed.
fn segment_ends(text: &str) -> Vec<usize> {
    let (segments, _) = headed(text);
    segments
        .into_iter()
        .scan(0, |end, cut| {
            *end += cut.len();
            Some(*end)
        })
        .collect()
}
