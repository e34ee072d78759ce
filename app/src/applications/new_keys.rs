//! New keys, on their way to the page that shows them once.

#[cfg(feature = "ssr")]
use domain::{ApiKey, KeyKind};
use serde::{Deserialize, Serialize};

/// New keys. Not `Debug`, so that they can't be logged by accident.
#[derive(Clone, Serialize, Deserialize)]
pub struct NewKeys {
    pub live: Option<String>,
    pub test: Option<String>,
}

#[cfg(feature = "ssr")]
impl NewKeys {
    /// Takes the text of each key. `keys` has at most one of each kind.
    pub fn of(keys: &[ApiKey]) -> Self {
        let text = |kind| {
            let key = keys.iter().find(|key| key.kind() == kind)?;
            Some(key.expose().to_owned())
        };
        Self { live: text(KeyKind::Live), test: text(KeyKind::Test) }
    }
}
