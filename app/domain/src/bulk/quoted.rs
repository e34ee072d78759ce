//! Quoted messages (RFC 4180 §2): between quotes, with quotes inside doubled.

use memchr::{memchr, memchr_iter};

/// Where a quoted message ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// At the quote with this index.
    At(usize),
    /// Nowhere within the limit, or before the file's end.
    None,
    /// More must come first; up to this index there is no end.
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

/// Characters of a quoted message once its doubled quotes are single. Counts what begins a
/// character, also in what isn't UTF-8.
pub fn characters(message: &[u8]) -> usize {
    let begun = message.iter().filter(|&&byte| byte & 0xc0 != 0x80).count();
    begun - memchr_iter(b'"', message).count() / 2
}
