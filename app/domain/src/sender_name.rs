//! Sender names and the requests for them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words::words;

/// The maximum number of characters in a sender name (the alphanumeric address of 3GPP TS 23.040
/// §9.1.2.5).
pub const SENDER_NAME_CHARS_MAX: usize = 11;
/// The maximum number of sender names that an application can request within 24 hours. Requests are
/// never deleted, so their number must be limited.
pub const SENDER_REQUESTS_PER_DAY: i64 = 10;

/// A sender name: 1 to 11 ASCII letters and digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SenderName(String);

/// The text isn't a valid sender name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "A sender name has 1 to {SENDER_NAME_CHARS_MAX} letters from A to Z and digits, without spaces."
)]
pub struct InvalidSenderName;

impl SenderName {
    /// Parses a sender name without trimming it.
    ///
    /// # Errors
    /// Returns an error unless the text is 1 to 11 ASCII letters and digits.
    pub fn parse(text: &str) -> Result<Self, InvalidSenderName> {
        let fits = (1..=SENDER_NAME_CHARS_MAX).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric());
        if fits { Ok(Self(text.to_owned())) } else { Err(InvalidSenderName) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name in lower case. Names that differ only in case are the same name.
    pub fn folded(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// Returns the look-alike form of the name. Names that people could confuse have the same form.
    pub fn looks(&self) -> String {
        looks(&self.folded())
    }
}

/// Returns the look-alike form of a lower-case text: letters and digits that look alike become the
/// same character.
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

/// Returns the reserved words that a name contains, even if only their look-alike forms match.
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
    /// The status of a request for a sender name.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum SenderStatus {
        Pending = "pending",
        Accepted = "accepted",
        Rejected = "rejected",
        /// The customer made a newer request before staff decided, or staff accepted a newer name.
        Replaced = "replaced",
        /// The customer withdrew the request.
        Withdrawn = "withdrawn",
    }
}

words! {
    /// The state of an application's sender name. If the application was created with a name, it
    /// can't send until staff accept a name. A name requested later never blocks sending.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum SenderState {
        /// No name and no request. Messages carry the installation's default sender.
        None = "none",
        /// A name was requested later. Messages carry the installation's default sender until staff
        /// accept a name.
        Requested = "requested",
        /// The application was created with a name, and staff haven't decided yet.
        Pending = "pending",
        /// The application was created with a name, and staff rejected it.
        Rejected = "rejected",
        Accepted = "accepted",
    }
}

impl SenderState {
    /// Returns the state after the customer requests a name.
    pub const fn after_request(self) -> Self {
        match self {
            Self::None | Self::Requested => Self::Requested,
            Self::Pending | Self::Rejected => Self::Pending,
            Self::Accepted => Self::Accepted,
        }
    }

    /// Returns the state after staff reject the last request. An account can have only one
    /// application without a sender name; `is_only` is true if the account has no other one.
    pub const fn after_rejection(self, is_only: bool) -> Self {
        match self {
            Self::None | Self::Requested if is_only => Self::None,
            Self::None | Self::Requested => Self::Requested,
            Self::Pending | Self::Rejected => Self::Rejected,
            Self::Accepted => Self::Accepted,
        }
    }

    /// Returns the state after the customer withdraws the last request.
    pub const fn after_withdrawal(self) -> Self {
        match self {
            Self::Accepted => Self::Accepted,
            Self::None | Self::Requested | Self::Pending | Self::Rejected => Self::None,
        }
    }
}
