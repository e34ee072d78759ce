//! A message's text: the pages that are billed, the segments that go on air.

mod gsm7;
pub mod parts;
pub mod runs;

/// Characters (Unicode scalar values) of one page, the billing unit.
pub const PAGE_CHARS: usize = 160;

/// How the text is encoded on air (3GPP TS 23.038).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// The 7-bit default alphabet with its extension table.
    Gsm7,
    /// UTF-16, which the standard calls UCS-2.
    Ucs2,
}

/// The text of a message: from 1 character up to the limit, without NUL.
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
    /// Takes a text of at most `max_pages` pages as it is.
    ///
    /// # Errors
    /// When it is empty, has a NUL, or is too long.
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

    /// A text as it was stored.
    pub const fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// Pages that are billed.
    pub fn pages(&self) -> usize {
        pages(&self.0)
    }

    /// Segments that go on air.
    pub fn segments(&self) -> usize {
        segments(&self.0)
    }
}

impl std::fmt::Debug for MessageText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MessageText({} pages, hidden)", self.pages())
    }
}

/// Pages of a text: its Unicode scalar values divided by 160, rounded up.
pub fn pages(text: &str) -> usize {
    text.chars().count().div_ceil(PAGE_CHARS)
}

/// The encoding in which a carrier is handed the text: GSM-7 when every character is in it.
pub fn encoding(text: &str) -> Encoding {
    if text.chars().all(|c| gsm7_septets(c).is_some()) {
        Encoding::Gsm7
    } else {
        Encoding::Ucs2
    }
}

/// Segments of a text: 160 septets or 70 UTF-16 units in one, 153 or 67 in each of several, never
/// splitting an escape sequence or a surrogate pair.
pub fn segments(text: &str) -> usize {
    cuts(text, encoding(text), 0).count()
}

/// How many septets or UTF-16 units can be added to a text before it needs another segment.
pub fn units_left(text: &str) -> usize {
    let encoding = encoding(text);
    let cuts = cuts(text, encoding, 0);
    let units_max = cuts.units_max;
    let last = cuts.last().unwrap_or_default();
    let used: usize = last.chars().map(|c| units(c, encoding)).sum();
    units_max.saturating_sub(used)
}

/// The text of each segment, in order; there is at least one. Where there are several, each is
/// `shorter_by` units shorter than the longest one could be.
fn cuts(text: &str, encoding: Encoding, shorter_by: usize) -> Cuts<'_> {
    let (alone, joined) = match encoding {
        Encoding::Gsm7 => (160, 153),
        Encoding::Ucs2 => (70, 67),
    };
    let units: usize = text.chars().map(|c| units(c, encoding)).sum();
    Cuts {
        rest: Some(text),
        encoding,
        units_max: if units <= alone {
            alone
        } else {
            joined - shorter_by
        },
    }
}

struct Cuts<'a> {
    /// `None` after the last one.
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

/// Septets or UTF-16 units of a character that is in the encoding.
fn units(c: char, encoding: Encoding) -> usize {
    match encoding {
        Encoding::Gsm7 => gsm7_septets(c).unwrap_or(1),
        Encoding::Ucs2 => c.len_utf16(),
    }
}

/// Septets of a character in GSM-7: 1 in the basic table, 2 in the extension, `None` in neither
/// (3GPP TS 23.038 §6.2.1 and §6.2.1.1).
pub fn gsm7_septets(c: char) -> Option<usize> {
    gsm7::septets(c).map(|septets| match septets {
        gsm7::Septets::Basic(_) => 1,
        gsm7::Septets::Extension(_) => 2,
    })
}
