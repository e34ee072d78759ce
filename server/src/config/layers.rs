//! Where a setting's value comes from: defaults < file < environment < flags.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::ConfigError;
use super::keys::{KEYS, Key, find};

/// What every environment variable of ours starts with.
const PREFIX: &str = "HELIOGRAPH_";
/// Names the settings file; itself no setting.
const CONFIG_VARIABLE: &str = "HELIOGRAPH_CONFIG";
/// Read when it exists and no other file is named.
const DEFAULT_FILE: &str = "heliograph.toml";

/// Which layer won.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Default,
    File,
    Environment,
    Flag,
}

impl Source {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::File => "file",
            Self::Environment => "environment",
            Self::Flag => "flag",
        }
    }
}

/// Every setting's text, with the layer it came from. A setting that may be absent and is, is not
/// in it.
pub type Values = BTreeMap<&'static str, (String, Source)>;

/// The tables of the settings file, which no other layer has.
#[derive(Debug, Default)]
pub struct Tables {
    /// As errors name the file.
    pub file: String,
    pub carriers: Vec<toml::Table>,
    pub routes: Vec<toml::Table>,
}

/// Reads all layers, the strongest last.
pub fn read(
    config_flag: Option<&Path>,
    environment: impl Iterator<Item = (OsString, OsString)>,
    flags: &[(&'static str, String)],
) -> Result<(Values, Tables), ConfigError> {
    let mut values: Values = KEYS
        .iter()
        .filter_map(|key| Some((key.name, (key.default?.to_owned(), Source::Default))))
        .collect();
    let (config_variable, from_environment) = read_environment(environment)?;
    let named = config_flag.map(Path::to_owned).or(config_variable);
    let (from_file, tables) = read_file(named)?;
    for (key, text) in from_file {
        values.insert(key, (text, Source::File));
    }
    for (key, text) in from_environment {
        values.insert(key, (text, Source::Environment));
    }
    for (name, text) in flags {
        values.insert(name, (text.clone(), Source::Flag));
    }
    Ok((values, tables))
}

type Found = BTreeMap<&'static str, String>;

fn read_environment(
    environment: impl Iterator<Item = (OsString, OsString)>,
) -> Result<(Option<PathBuf>, Found), ConfigError> {
    let mut config = None;
    let mut found = Found::new();
    for (variable, value) in environment {
        let Some(variable) = variable
            .to_str()
            .filter(|variable| variable.starts_with(PREFIX))
        else {
            continue;
        };
        // Container tools pass on what isn't set as an empty text.
        if value.is_empty() {
            continue;
        }
        if variable == CONFIG_VARIABLE {
            config = Some(PathBuf::from(value));
            continue;
        }
        let text = value
            .into_string()
            .map_err(|_| ConfigError::new(format!("{variable} isn't valid UTF-8")))?;
        let name = variable[PREFIX.len()..].to_ascii_lowercase();
        // Only upper case is ours: `HELIOGRAPH_addr` would be one setting under two names.
        let upper = !variable.bytes().any(|b| b.is_ascii_lowercase());
        let unknown = || ConfigError::new(format!("unknown setting {variable} in the environment"));
        if !upper {
            return Err(unknown());
        }
        insert(&mut found, &name, text, variable)?.ok_or_else(unknown)?;
    }
    Ok((config, found))
}

fn read_file(named: Option<PathBuf>) -> Result<(Found, Tables), ConfigError> {
    let path = match named {
        Some(path) => path,
        None if Path::new(DEFAULT_FILE).exists() => PathBuf::from(DEFAULT_FILE),
        None => return Ok((Found::new(), Tables::default())),
    };
    let shown = path.display();
    let text = std::fs::read_to_string(&path)
        .map_err(|error| ConfigError::new(format!("can't read {shown}: {error}")))?;
    let table: toml::Table = toml::from_str(&text).map_err(|error| {
        // The error's own display quotes the line, which may hold a secret.
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map_or(1, |before| before.matches('\n').count() + 1);
        let what = error.message();
        ConfigError::new(format!("{shown}, line {line}: not valid TOML: {what}"))
    })?;
    let mut found = Found::new();
    let mut tables = Tables {
        file: shown.to_string(),
        ..Tables::default()
    };
    for (name, value) in table {
        match name.as_str() {
            "carrier" => tables.carriers = listed(&name, value, &tables.file)?,
            "route" => tables.routes = listed(&name, value, &tables.file)?,
            _ => {
                let text = scalar(&value).ok_or_else(|| {
                    ConfigError::new(format!("{name} in {shown} must be a plain value"))
                })?;
                insert(&mut found, &name, text, &name)?.ok_or_else(|| {
                    ConfigError::new(format!("unknown setting {name} in {shown}"))
                })?;
            }
        }
    }
    Ok((found, tables))
}

/// The tables under a name that stands in double brackets.
fn listed(name: &str, value: toml::Value, file: &str) -> Result<Vec<toml::Table>, ConfigError> {
    let tables = value.try_into();
    tables.map_err(|_| ConfigError::new(format!("{name} in {file} must be [[{name}]] tables")))
}

/// A TOML value as the text that the environment would carry; lists are joined by commas.
pub(super) fn scalar(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(flag) => Some(flag.to_string()),
        toml::Value::Array(items) => {
            let items: Option<Vec<String>> = items.iter().map(scalar).collect();
            Some(items?.join(","))
        }
        toml::Value::Datetime(_) | toml::Value::Table(_) => None,
    }
}

/// Files a value under its setting; `None` when there is no such setting.
fn insert(
    found: &mut Found,
    name: &str,
    text: String,
    shown: &str,
) -> Result<Option<()>, ConfigError> {
    let (key, text) = match (find(name), secret_file(name)) {
        (Some(key), _) => (key, text),
        (None, Some(key)) => (key, read_secret(&text, shown)?),
        (None, None) => return Ok(None),
    };
    if found.insert(key.name, text).is_some() {
        return Err(ConfigError::new(format!(
            "{} is set twice: as a value and as a file",
            key.name
        )));
    }
    Ok(Some(()))
}

/// The secret setting that `name_file` stands for.
fn secret_file(name: &str) -> Option<&'static Key> {
    find(name.strip_suffix("_file")?).filter(|key| key.secret)
}

/// What a file holds that is named in the place of a secret.
pub fn read_secret(path: impl AsRef<Path>, shown: &str) -> Result<String, ConfigError> {
    let path = path.as_ref();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let path = path.display();
        ConfigError::new(format!("{shown}: can't read {path}: {error}"))
    })?;
    // Editors end a file with a line break that is no part of the secret.
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
