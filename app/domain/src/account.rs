//! What an account's email must look like, and what its owner chooses for it.

use std::fmt;

use serde::{Deserialize, Serialize};

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
    /// When it isn't one local part, one `@` and a domain, without white space or control
    /// characters.
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
            && domain_ok;
        if ok {
            Ok(Self(text))
        } else {
            Err(InvalidEmail)
        }
    }

    /// The address, in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
