//! What an account's email must look like, and what its owner chooses for it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::printable::is_invisible;
use crate::words::words;

/// Longest email address that can be used in SMTP (RFC 5321 §4.5.3.1.3, less the angle brackets).
pub const EMAIL_CHARS_MAX: usize = 254;
/// Longest name of a device.
pub const DEVICE_NAME_CHARS_MAX: usize = 60;
/// Longest part before the `@` (RFC 5321 §4.5.3.1.1).
const LOCAL_PART_CHARS_MAX: usize = 64;

/// An email address, kept in lower case: two spellings of one address are one account.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Email(String);

words! {
    /// The colours in which an account sees the portal.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Theme {
        /// Those that the browser or its system prefers.
        #[default]
        System = "system",
        Light = "light",
        Dark = "dark",
    }
}

/// Why a text is no email address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Enter an email address like name@example.org.")]
pub struct InvalidEmail;

impl Email {
    /// Takes a text as it was typed; white space around it is dropped.
    ///
    /// # Errors
    /// When it isn't one local part, one `@` and a domain, without white space, control characters
    /// or others that aren't seen: an address must not look like another one.
    pub fn parse(text: &str) -> Result<Self, InvalidEmail> {
        // Lower case first: it can change characters, and the text that is kept is to be checked.
        let text = text.trim().to_lowercase();
        let (local, domain) = text.rsplit_once('@').ok_or(InvalidEmail)?;
        let plain =
            |c: char| !c.is_whitespace() && !c.is_control() && !"<>()[],;:\\\"@".contains(c);
        let domain_ok = !domain.is_empty()
            && domain
                .split('.')
                .all(|label| !label.is_empty() && !label.starts_with('-') && !label.ends_with('-'))
            && domain
                .chars()
                .all(|c| c.is_alphanumeric() || c == '-' || c == '.');
        let ok = !local.is_empty()
            && local.chars().count() <= LOCAL_PART_CHARS_MAX
            && text.chars().count() <= EMAIL_CHARS_MAX
            && local.chars().all(plain)
            && !text.contains(is_invisible)
            && domain_ok;
        if ok {
            Ok(Self(text))
        } else {
            Err(InvalidEmail)
        }
    }

    /// The letters of an address that aren't plain Latin ones, in their order, each once: other
    /// scripts have letters that look the same. `None` where there are none.
    pub fn unusual_letters(address: &str) -> Option<String> {
        let mut unusual = String::new();
        for c in address.chars() {
            if !is_usual(c) && !unusual.contains(c) {
                unusual.push(c);
            }
        }
        (!unusual.is_empty()).then_some(unusual)
    }

    /// The address, in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// ASCII, and the letters of Western and Central Europe whose accents are seen: not the dotless i,
/// the kra, and the n with an apostrophe before it.
const fn is_usual(c: char) -> bool {
    c.is_ascii()
        || matches!(c, '\u{df}'..='\u{f6}' | '\u{f8}'..='\u{17e}')
            && !matches!(c, '\u{131}' | '\u{138}' | '\u{149}')
}

/// What a letter of an address is called that isn't a plain Latin one: its script, where that is one
/// with letters that look like Latin ones, and its number.
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
