//! Opt-outs: numbers that an application may not send to.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::words::words;

words! {
    /// Who added an opt-out.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum OptOutSource {
        /// The handset, with a message.
        Reply = "reply",
        /// The customer's program.
        Api = "api",
        /// The customer, in the portal.
        Portal = "portal",
    }
}

/// An opt-out as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptOutRecord {
    pub number: String,
    pub source: OptOutSource,
    pub created_at: Timestamp,
}
