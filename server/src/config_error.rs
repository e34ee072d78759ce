//! Errors in the settings.

/// A sentence that names the setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl ConfigError {
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}
