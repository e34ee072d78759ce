//! The rules for an account's email and for the settings that its owner chooses.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::printable::is_invisible;
use crate::words::words;

/// The maximum length of an email address in SMTP (RFC 5321 §4.5.3.1.3, less the angle brackets).
pub const EMAIL_CHARS_MAX: usize = 254;
/// The maximum number of characters in a device's name.
pub const DEVICE_NAME_CHARS_MAX: usize = 60;
/// The maximum length of the part before the `@` (RFC 5321 §4.5.3.1.1).
const LOCAL_PART_CHARS_MAX: usize = 64;

/// An email address in lower case. Addresses that differ only in case belong to the same account.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Email(String);

words! {
    /// The portal's colour theme for an account.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Theme {
        /// The theme that the browser or operating system prefers.
        #[default]
        System = "system",
        Light = "light",
        Dark = "dark",
    }
}

/// The text isn't a valid email address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Enter an email address like name@example.org.")]
pub struct InvalidEmail;

impl Email {
    /// Parses an email address as typed. Drops white space around it.
    ///
    /// # Errors
    /// Returns an error unless the text is a local part, one `@` and a domain, within the length
    /// limits. White space, control characters and invisible characters are refused, because they
    /// could make one address look like another.
    pub fn parse(text: &str) -> Result<Self, InvalidEmail> {
        // Lower-casing comes first, because it can change characters and the checks must see the
        // stored text.
        let text = text.trim().to_lowercase();
        let (local, domain) = text.rsplit_once('@').ok_or(InvalidEmail)?;
        let plain =
            |c: char| !c.is_whitespace() && !c.is_control() && !"<>()[],;:\\\"@".contains(c);
        let domain_ok = !domain.is_empty()
            && domain
                .split('.')
                .all(|label| !label.is_empty() && !label.starts_with('-') && !label.ends_with('-'))
            && domain.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '.');
        let ok = !local.is_empty()
            && local.chars().count() <= LOCAL_PART_CHARS_MAX
            && text.chars().count() <= EMAIL_CHARS_MAX
            && local.chars().all(plain)
            && !text.contains(is_invisible)
            && domain_ok;
        if ok { Ok(Self(text)) } else { Err(InvalidEmail) }
    }

    /// Returns the letters of an address that aren't plain Latin ones, each once, in order. Letters
    /// of other scripts can look like Latin ones. Returns `None` if there are no such letters.
    pub fn unusual_letters(address: &str) -> Option<String> {
        let mut unusual = String::new();
        for c in address.chars() {
            if !is_usual(c) && !unusual.contains(c) {
                unusual.push(c);
            }
        }
        (!unusual.is_empty()).then_some(unusual)
    }

    /// Returns the address, in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a character is ASCII, or a Western or Central European letter with a visible accent.
/// Excludes U+0131 (dotless i), U+0138 (kra) and U+0149 (n preceded by an apostrophe).
const fn is_usual(c: char) -> bool {
    c.is_ascii()
        || matches!(c, '\u{df}'..='\u{f6}' | '\u{f8}'..='\u{17e}')
            && !matches!(c, '\u{131}' | '\u{138}' | '\u{149}')
}

/// Returns a name for a letter that isn't plain Latin: the letter and its code point. If its script
/// has letters that look like Latin ones, the name starts with the script.
pub fn letter_name(c: char) -> String {
    let script = match c {
        '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => "Greek ",
        '\u{400}'..='\u{52f}' | '\u{1c80}'..='\u{1c8f}' | '\u{2de0}'..='\u{2dff}' => "Cyrillic ",
        '\u{530}'..='\u{58f}' => "Armenian ",
        '\u{13a0}'..='\u{13ff}' | '\u{ab70}'..='\u{abbf}' => "Cherokee ",
        _ => "",
    };
    format!("{script}{c} (U+{:04X})", u32::from(c))
}
