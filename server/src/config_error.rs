//! Errors in the settings.

/// A sentence that names the setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl ConfigError {
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }

    /// Returns the sentences in one line, for the log.
    pub fn in_one_line(&self) -> String {
        self.0.replace(":\n  ", ": ").replace("\n  ", "; ")
    }
}

#[cfg(test)]
mod tests {
    use super::ConfigError;

    #[test]
    fn the_log_has_all_problems_in_one_line() {
        let problems = ConfigError::new("heliograph.toml:\n  line 4: no url\n  line 9: no name");
        assert_eq!(problems.in_one_line(), "heliograph.toml: line 4: no url; line 9: no name");
    }
}
