//! The display names of applications.

use std::fmt;

/// The maximum number of characters in a display name.
pub const APPLICATION_NAME_CHARS_MAX: usize = 40;

/// The name by which an application's owner and staff recognise the application. Recipients never
/// see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationName(String);

/// The text isn't a valid display name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("A name has at most {APPLICATION_NAME_CHARS_MAX} characters, on one line.")]
pub struct InvalidApplicationName;

impl ApplicationName {
    /// Parses a display name and removes the white space around it. Returns `None` for an empty
    /// text, which stands for the default name.
    ///
    /// # Errors
    /// Returns an error if the text is too long, or has control characters or characters that
    /// change the direction of the text after them.
    pub fn parse(text: &str) -> Result<Option<Self>, InvalidApplicationName> {
        let text = text.trim();
        let is_short =
            text.chars().take(APPLICATION_NAME_CHARS_MAX + 1).count() <= APPLICATION_NAME_CHARS_MAX;
        if !is_short || text.chars().any(|c| c.is_control() || turns(c)) {
            return Err(InvalidApplicationName);
        }
        Ok((!text.is_empty()).then(|| Self(text.to_owned())))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a character ends the line or changes the direction of the text after it, which would
/// reach beyond the name (Unicode Standard Annex 9).
const fn turns(c: char) -> bool {
    matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl fmt::Display for ApplicationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
