//! Quoted messages (RFC 4180 §2): enclosed in quotes, with inner quotes doubled.

use memchr::{memchr, memchr_iter};

/// The end of a quoted message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// The closing quote has this index.
    At(usize),
    /// There is no closing quote within the limit, or before the end of the file.
    None,
    /// Unknown until more bytes arrive. The closing quote isn't before index `searched`.
    Unknown { searched: usize },
}

/// Finds the closing quote of a message between the indexes `searched` and `bytes_max`. `last` is
/// true if no more bytes will arrive.
pub fn closing(message: &[u8], searched: usize, bytes_max: usize, last: bool) -> Closing {
    let within = message.len().min(bytes_max + 1);
    let mut at = searched;
    while let Some(quote) =
        message.get(at..within).and_then(|part| memchr(b'"', part)).map(|found| at + found)
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
        Closing::Unknown { searched: within.max(at) }
    }
}

/// Returns the number of characters in a quoted message, counting each doubled quote once. Counts
/// the bytes that start a character, so it also works on invalid UTF-8.
pub fn characters(message: &[u8]) -> usize {
    let begun = message.iter().filter(|&&byte| byte & 0xc0 != 0x80).count();
    begun - memchr_iter(b'"', message).count() / 2
}
