//! Quoted messages (RFC 4180 §2): between quotes, with quotes inside doubled.

use memchr::{memchr, memchr_iter};

/// Where a quoted message ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// At the quote with this index.
    At(usize),
    /// Nowhere within the limit, or before the file's end.
    None,
    /// Not known until more bytes come; there is no end before this index.
    Unknown { searched: usize },
}

/// Looks for the closing quote of a message, from `searched` on, up to index `bytes_max`.
pub fn closing(message: &[u8], searched: usize, bytes_max: usize, last: bool) -> Closing {
    let within = message.len().min(bytes_max + 1);
    let mut at = searched;
    while let Some(quote) = message
        .get(at..within)
        .and_then(|part| memchr(b'"', part))
        .map(|found| at + found)
    {
        match message.get(quote + 1) {
            Some(b'"') => at = quote + 2,
            None if !last => return Closing::Unknown { searched: quote },
            _ => return Closing::At(quote),
        }
    }
    if last || message.len() > bytes_max {
        Closing::None
    } else {
        Closing::Unknown {
            searched: within.max(at),
        }
    }
}

/// Characters of a quoted message, with each doubled quote counted once. It counts the bytes that
/// begin a character, and so works on invalid UTF-8 too.
pub fn characters(message: &[u8]) -> usize {
    let begun = message.iter().filter(|&&byte| byte & 0xc0 != 0x80).count();
    begun - memchr_iter(b'"', message).count() / 2
}
