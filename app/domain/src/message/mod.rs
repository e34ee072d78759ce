//! The text of a message. It is billed by the page and transmitted in segments.

pub(crate) mod gsm7;
pub mod parts;
mod replaced;
pub mod runs;

/// The number of characters (Unicode scalar values) in a page, the billing unit.
pub const PAGE_CHARS: usize = 160;

/// The encoding of a text on air (3GPP TS 23.038).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// The 7-bit default alphabet with its extension table.
    Gsm7,
    /// UTF-16, which the standard calls UCS-2.
    Ucs2,
}

/// The text of a message: at least 1 character, without NUL, and within the page limit.
#[derive(Clone, PartialEq, Eq)]
pub struct MessageText(String);

/// Why a text can't be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMessage {
    #[error("message must not be empty")]
    Empty,
    #[error("message must not contain a NUL character")]
    Nul,
    #[error("message is longer than {max_pages} pages of {PAGE_CHARS} characters")]
    TooLong { max_pages: usize },
}

impl MessageText {
    /// Validates a text and keeps it unchanged.
    ///
    /// # Errors
    /// Returns an error if the text is empty, contains a NUL, or has more than `max_pages` pages.
    pub fn parse(text: String, max_pages: usize) -> Result<Self, InvalidMessage> {
        if text.is_empty() {
            return Err(InvalidMessage::Empty);
        }
        if text.contains('\0') {
            return Err(InvalidMessage::Nul);
        }
        if pages(&text) > max_pages {
            return Err(InvalidMessage::TooLong { max_pages });
        }
        Ok(Self(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Creates a message text from storage, without validation.
    pub const fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// Returns the text with common replacements for all characters outside GSM-7. Returns `None`
    /// if there are no such characters, if one has no replacement, or if the result would have more
    /// pages.
    pub fn replaced(&self) -> Option<Self> {
        replaced::to_gsm7(&self.0).map(Self)
    }

    /// Returns the number of pages that are billed.
    pub fn pages(&self) -> usize {
        pages(&self.0)
    }

    /// Returns the number of segments that go on air.
    pub fn segments(&self) -> usize {
        segments(&self.0)
    }
}

impl std::fmt::Debug for MessageText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MessageText({} pages)", self.pages())
    }
}

/// Returns the number of pages in a text: its Unicode scalar values divided by 160, rounded up.
pub fn pages(text: &str) -> usize {
    text.chars().count().div_ceil(PAGE_CHARS)
}

/// Returns the encoding in which a carrier gets a text: GSM-7 if it contains every character,
/// otherwise UCS-2.
pub fn encoding(text: &str) -> Encoding {
    if text.chars().all(|c| gsm7_septets(c).is_some()) { Encoding::Gsm7 } else { Encoding::Ucs2 }
}

/// Returns the number of segments in a text. A single segment holds 160 septets or 70 UTF-16 units.
/// Each of several segments holds 153 or 67. Escape sequences and surrogate pairs are never split.
pub fn segments(text: &str) -> usize {
    cuts(text, encoding(text), 0).count()
}

/// Returns how many more septets or UTF-16 units fit before the text needs another segment.
pub fn units_left(text: &str) -> usize {
    let encoding = encoding(text);
    let cuts = cuts(text, encoding, 0);
    let units_max = cuts.units_max;
    let last = cuts.last().unwrap_or_default();
    let used: usize = last.chars().map(|c| units(c, encoding)).sum();
    units_max.saturating_sub(used)
}

/// Splits a text into segments. There is always at least one. If there are several, the maximum
/// length of each is reduced by `shorter_by` units.
fn cuts(text: &str, encoding: Encoding, shorter_by: usize) -> Cuts<'_> {
    let (alone, joined) = match encoding {
        Encoding::Gsm7 => (160, 153),
        Encoding::Ucs2 => (70, 67),
    };
    let units: usize = text.chars().map(|c| units(c, encoding)).sum();
    Cuts {
        rest: Some(text),
        encoding,
        units_max: if units <= alone { alone } else { joined - shorter_by },
    }
}

struct Cuts<'a> {
    /// `None` after the last segment.
    rest: Option<&'a str>,
    encoding: Encoding,
    units_max: usize,
}

impl<'a> Iterator for Cuts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest?;
        let mut used = 0;
        let full = rest.char_indices().find(|(_, c)| {
            used += units(*c, self.encoding);
            used > self.units_max
        });
        let Some((at, _)) = full else {
            self.rest = None;
            return Some(rest);
        };
        let (cut, rest) = rest.split_at(at);
        self.rest = Some(rest);
        Some(cut)
    }
}

/// Returns the number of septets or UTF-16 units of a character that the encoding contains.
fn units(c: char, encoding: Encoding) -> usize {
    match encoding {
        Encoding::Gsm7 => gsm7_septets(c).unwrap_or(1),
        Encoding::Ucs2 => c.len_utf16(),
    }
}

/// Returns the number of septets of a character in GSM-7: 1 in the basic table, 2 in the extension
/// table. Returns `None` if it is in neither (3GPP TS 23.038 §6.2.1 and §6.2.1.1).
pub fn gsm7_septets(c: char) -> Option<usize> {
    gsm7::septets(c).map(|septets| match septets {
        gsm7::Septets::Basic(_) => 1,
        gsm7::Septets::Extension(_) => 2,
    })
}
