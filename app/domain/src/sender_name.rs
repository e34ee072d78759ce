//! Sender names, and the states of the requests for them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words::words;

/// Most characters of a sender name (the alphanumeric address of 3GPP TS 23.040 §9.1.2.5).
pub const SENDER_NAME_CHARS_MAX: usize = 11;
/// The most sender names that an application can request within 24 hours: each request is kept for
/// ever.
pub const SENDER_REQUESTS_PER_DAY: i64 = 10;

/// 1 to 11 ASCII letters and digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SenderName(String);

/// The text can't be a sender name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("A sender name has 1 to {SENDER_NAME_CHARS_MAX} letters and digits, without spaces.")]
pub struct InvalidSenderName;

impl SenderName {
    /// Takes the text as it is.
    ///
    /// # Errors
    /// When it isn't 1 to 11 ASCII letters and digits.
    pub fn parse(text: &str) -> Result<Self, InvalidSenderName> {
        let fits = (1..=SENDER_NAME_CHARS_MAX).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric());
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidSenderName)
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name in lower case: names that differ in case alone are one name.
    pub fn folded(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// What the name looks like: names that people take for each other look the same.
    pub fn looks(&self) -> String {
        looks(&self.folded())
    }
}

/// What a text in lower case looks like: letters and digits that are taken for each other are one.
fn looks(folded: &str) -> String {
    let alike = folded.chars().map(|c| match c {
        '0' => 'o',
        '1' | 'i' | 'j' => 'l',
        '2' => 'z',
        '3' => 'e',
        '4' => 'a',
        '5' => 's',
        '6' | '9' => 'g',
        '7' => 't',
        '8' => 'b',
        c => c,
    });
    let alike: String = alike.collect();
    alike.replace("rn", "m").replace("vv", "w")
}

/// The reserved words that a name contains, also where it only looks like them.
pub fn reserved_in(name: &str, reserved: &[String]) -> Vec<String> {
    let name = looks(&name.to_ascii_lowercase());
    let within = |word: &&String| name.contains(&looks(&word.to_ascii_lowercase()));
    reserved.iter().filter(within).cloned().collect()
}

impl fmt::Display for SenderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

words! {
    /// The state of a request for a sender name.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum SenderStatus {
        Pending = "pending",
        Accepted = "accepted",
        Rejected = "rejected",
        /// A newer request came before staff decided, or a newer name was accepted.
        Replaced = "replaced",
        /// The customer wants the name no more.
        Withdrawn = "withdrawn",
    }
}

words! {
    /// Whether an application has a sender name that its messages may carry. A name that it was
    /// created with must be accepted before it sends; one that it asks for later never stops it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum SenderState {
        /// It has none and asks for none; its messages carry the installation's.
        None = "none",
        /// It asked for one later; its messages carry the installation's meanwhile.
        Requested = "requested",
        /// It was created with a name that staff didn't accept yet.
        Pending = "pending",
        /// It was created with a name that staff rejected.
        Rejected = "rejected",
        Accepted = "accepted",
    }
}

impl SenderState {
    /// The state after a request for a name.
    pub const fn after_request(self) -> Self {
        match self {
            Self::None | Self::Requested => Self::Requested,
            Self::Pending | Self::Rejected => Self::Pending,
            Self::Accepted => Self::Accepted,
        }
    }

    /// The state after the last request was rejected. An account has at most one application without
    /// a sender name: `is_only` says that it has no other one.
    pub const fn after_rejection(self, is_only: bool) -> Self {
        match self {
            Self::None | Self::Requested if is_only => Self::None,
            Self::None | Self::Requested => Self::Requested,
            Self::Pending | Self::Rejected => Self::Rejected,
            Self::Accepted => Self::Accepted,
        }
    }

    /// The state after the last request was withdrawn.
    pub const fn after_withdrawal(self) -> Self {
        match self {
            Self::Accepted => Self::Accepted,
            Self::None | Self::Requested | Self::Pending | Self::Rejected => Self::None,
        }
    }
}
