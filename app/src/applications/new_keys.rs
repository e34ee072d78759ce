//! Keys that were just made, on their way to the page that shows them once.

#[cfg(feature = "ssr")]
use domain::{ApiKey, KeyKind};
use serde::{Deserialize, Serialize};

/// Keys that were just made. They can't be printed by accident: there is no `Debug`.
#[derive(Clone, Serialize, Deserialize)]
pub struct NewKeys {
    pub live: Option<String>,
    pub test: Option<String>,
}

#[cfg(feature = "ssr")]
impl NewKeys {
    /// The texts of these keys: at most one of each kind.
    pub fn of(keys: &[ApiKey]) -> Self {
        let text = |kind| {
            let key = keys.iter().find(|key| key.kind() == kind)?;
            Some(key.expose().to_owned())
        };
        Self {
            live: text(KeyKind::Live),
            test: text(KeyKind::Test),
        }
    }
}
