//! Access to the settings for the crate `fuzz`.

use std::path::Path;

use super::{Settings, Source, layers};

/// Reads a settings file. Returns the plain settings that it sets, except secrets.
///
/// # Errors
/// Returns the sentence for the operator.
pub fn settings(file: &Path) -> Result<Vec<(String, String)>, String> {
    let environment = std::iter::empty();
    let settings = Settings::load(Some(file), environment, &[]).map_err(|e| e.to_string())?;
    // Neither call may panic, whatever the settings are.
    settings.of_demo().shown();
    let set = settings.values.into_iter().filter(|(name, value)| {
        value.source == Source::File && !layers::SECRETS.contains(&name.as_str())
    });
    Ok(set.map(|(name, value)| (name, value.text)).collect())
}
