//! Splits a text for display: where its pages and segments end, and which characters prevent GSM-7.

use super::parts::headed;
use super::{Encoding, PAGE_CHARS, cuts, gsm7_septets};

/// A run of consecutive characters that are all in GSM-7, or all not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run<'a> {
    pub text: &'a str,
    /// True if the characters aren't in GSM-7. The whole text is then sent in UCS-2.
    pub foreign: bool,
    /// The number, from 1, of the segment that ends with this run. `None` if no segment ends here,
    /// and at the end of the text.
    pub ends_segment: Option<usize>,
    /// The number, from 1, of the page that ends with this run. `None` if no page ends here, and at
    /// the end of the text.
    pub ends_page: Option<usize>,
}

/// Splits a text into runs, in order.
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
        let ends_page = count.is_multiple_of(PAGE_CHARS).then_some(count / PAGE_CHARS);
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

/// Returns the characters that prevent GSM-7, each once, in order of first appearance.
pub fn foreign_characters(text: &str) -> Vec<char> {
    let mut found = Vec::new();
    for c in text.chars().filter(|c| is_foreign(*c)) {
        if !found.contains(&c) {
            found.push(c);
        }
    }
    found
}

/// Returns the number of segments that a text would have if each foreign character were replaced by
/// one from the basic table.
pub fn segments_in_gsm7(text: &str) -> usize {
    let plain: String = text.chars().map(|c| if is_foreign(c) { '?' } else { c }).collect();
    cuts(&plain, Encoding::Gsm7, 0).count()
}

fn is_foreign(c: char) -> bool {
    gsm7_septets(c).is_none()
}

/// Returns the byte index where each segment ends. With a user data header, which is the default,
/// the parts that a carrier gets end there too.
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
