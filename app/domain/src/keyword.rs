//! Keywords, which split the messages to a shared number between applications.

use std::fmt;

use crate::folding;
use crate::words::serde_as_text;

/// The maximum number of characters in a keyword.
pub const KEYWORD_CHARS_MAX: usize = 20;

/// A keyword: 1 to 20 letters and digits, in capital letters without accents. So keywords that
/// differ only in case or accents are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Keyword(String);

/// The text isn't a valid keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("A keyword has 1 to {KEYWORD_CHARS_MAX} letters and digits, without spaces.")]
pub struct InvalidKeyword;

impl Keyword {
    /// Parses a keyword as people type it. Drops white space around the text.
    ///
    /// # Errors
    /// Returns an error unless the rest is 1 to 20 letters and digits.
    pub fn parse(text: &str) -> Result<Self, InvalidKeyword> {
        let text = text.trim();
        if !folding::is_word(text) {
            return Err(InvalidKeyword);
        }
        Self::first_of(text).ok_or(InvalidKeyword)
    }

    /// Returns the keyword that a message may start with: its first word. Punctuation and white
    /// space before it are ignored. Returns `None` if the message has no word, or if the first word
    /// is too long for a keyword.
    pub fn first_of(message: &str) -> Option<Self> {
        let word = folding::words(message).next()?;
        (word.chars().count() <= KEYWORD_CHARS_MAX).then_some(Self(word))
    }

    /// Creates a keyword from storage, without validation.
    pub const fn from_stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

serde_as_text!(Keyword, Self::parse);

impl From<Keyword> for String {
    fn from(keyword: Keyword) -> Self {
        keyword.0
    }
}

impl fmt::Display for Keyword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
