//! The layers of settings: defaults < file < environment < flags. `heliograph.default.toml`
//! contains the defaults, and lists every setting.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::file::{self, Item, Table};
use crate::config_error::ConfigError;
use crate::spelling;

/// The prefix of our environment variables.
const PREFIX: &str = "HELIOGRAPH_";
/// The variable that names the settings file. It isn't a setting.
const CONFIG_VARIABLE: &str = "HELIOGRAPH_CONFIG";
/// The variable that names the program for tests that run it. It isn't a setting either.
const PROGRAM_VARIABLE: &str = "HELIOGRAPH_BIN";
/// If no file is named, the first of these that exists is read. The Debian package has the second.
const SETTINGS_FILES: [&str; 2] = ["heliograph.toml", "/etc/heliograph/heliograph.toml"];
const DEFAULTS_FILE: &str = "heliograph.default.toml";
/// Settings that may contain a password. They are masked wherever settings are shown. `NAME_FILE`
/// may name a file that contains the value.
pub const SECRETS: [&str; 2] = ["database_url", "smtp_url"];

/// The layer that a value comes from.
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

/// The value of a setting. An empty text means that the setting isn't set.
#[derive(Clone, Debug)]
pub struct Value {
    pub text: String,
    pub source: Source,
    /// Where it is set, for errors: a file and a line, a variable or a flag.
    pub origin: String,
}

/// The values of all settings, by name.
pub type Values = BTreeMap<String, Value>;

/// The `[[carrier]]` and `[[route]]` tables. Only the settings file can contain them.
#[derive(Debug, Default)]
pub struct Tables {
    /// The settings file, for errors.
    pub file: String,
    pub carriers: Vec<(usize, Table)>,
    pub routes: Vec<(usize, Table)>,
}

/// Reads all layers in order. Each layer overrides the ones before.
pub fn read(
    config_flag: Option<&Path>,
    environment: impl Iterator<Item = (OsString, OsString)>,
    flags: &[(&'static str, String)],
) -> Result<(Values, Tables), ConfigError> {
    let mut values = defaults()?;
    let (config_variable, variables) = read_environment(environment)?;
    let tables = read_file(config_flag.map(Path::to_owned).or(config_variable), &mut values)?;
    for (variable, text) in variables {
        let name = variable[PREFIX.len()..].to_ascii_lowercase();
        // A variable in lower case would be a second name of the same setting.
        let is_upper = !variable.bytes().any(|b| b.is_ascii_lowercase());
        let name = if is_upper { &name } else { &variable };
        set(&mut values, name, text, Source::Environment, &variable)?;
    }
    for (name, text) in flags {
        let flag = format!("--{}", name.replace('_', "-"));
        set(&mut values, name, text.clone(), Source::Flag, &flag)?;
    }
    Ok((values, tables))
}

fn defaults() -> Result<Values, ConfigError> {
    let table = file::parse(service::DEFAULT_SETTINGS, DEFAULTS_FILE)?;
    let values = table.into_iter().map(|(name, item)| {
        let value = Value {
            text: plain(&name, &item, DEFAULTS_FILE)?,
            source: Source::Default,
            origin: format!("{DEFAULTS_FILE}, line {}", item.line),
        };
        Ok((name, value))
    });
    values.collect()
}

/// Returns the settings file that the environment names, and our other variables.
fn read_environment(
    environment: impl Iterator<Item = (OsString, OsString)>,
) -> Result<(Option<PathBuf>, BTreeMap<String, String>), ConfigError> {
    let mut config = None;
    let mut variables = BTreeMap::new();
    for (variable, value) in environment {
        let variable = variable.to_str().filter(|name| name.starts_with(PREFIX));
        // Container tools pass a variable that isn't set as an empty one.
        let Some(variable) = variable.filter(|_| !value.is_empty()) else {
            continue;
        };
        if variable == CONFIG_VARIABLE {
            config = Some(PathBuf::from(value));
            continue;
        }
        if variable == PROGRAM_VARIABLE {
            continue;
        }
        let text = value
            .into_string()
            .map_err(|_| ConfigError::new(format!("{variable} isn't valid UTF-8")))?;
        variables.insert(variable.to_owned(), text);
    }
    Ok((config, variables))
}

fn read_file(named: Option<PathBuf>, values: &mut Values) -> Result<Tables, ConfigError> {
    let usual = || SETTINGS_FILES.map(PathBuf::from).into_iter().find(|path| path.exists());
    let Some(path) = named.or_else(usual) else {
        return Ok(Tables::default());
    };
    let mut tables = Tables { file: path.display().to_string(), ..Tables::default() };
    for (name, item) in file::read(&path)? {
        match name.as_str() {
            "carrier" => tables.carriers = listed("carrier", item, &tables.file)?,
            "route" => tables.routes = listed("route", item, &tables.file)?,
            _ => {
                let text = plain(&name, &item, &tables.file)?;
                let origin = format!("{}, line {}", tables.file, item.line);
                set(values, &name, text, Source::File, &origin)?;
            }
        }
    }
    Ok(tables)
}

fn plain(name: &str, item: &Item, file: &str) -> Result<String, ConfigError> {
    item.text().ok_or_else(|| {
        let line = item.line;
        ConfigError::new(format!("{file}, line {line}: {name} must be a plain value"))
    })
}

/// Returns the tables under a name in double brackets, each with its line.
fn listed(name: &str, item: Item, file: &str) -> Result<Vec<(usize, Table)>, ConfigError> {
    let line = item.line;
    let tables = match item.value {
        file::Value::List(items) => (items.into_iter())
            .map(|item| match item.value {
                file::Value::Table(table) => Some((item.line, table)),
                _ => None,
            })
            .collect(),
        _ => None,
    };
    tables.ok_or_else(|| {
        ConfigError::new(format!("{file}, line {line}: {name} must be [[{name}]] tables"))
    })
}

/// Sets a value, and overrides the value of a weaker layer.
fn set(
    values: &mut Values,
    name: &str,
    text: String,
    source: Source,
    origin: &str,
) -> Result<(), ConfigError> {
    let secret = name.strip_suffix("_file").filter(|name| SECRETS.contains(name));
    let (name, text) = match secret {
        Some(secret) => (secret, read_secret(&text, &format!("{origin}: {name}"))?),
        None => (name, text),
    };
    let Some(value) = values.get_mut(name) else {
        let suggestion = suggestion(name, values.keys().map(String::as_str));
        let sentence = format!("{origin}: there is no setting {name}{suggestion}");
        return Err(ConfigError::new(sentence));
    };
    if value.source == source {
        return Err(ConfigError::new(format!(
            "{origin}: {name} is set twice: as a value and as a file"
        )));
    }
    *value = Value { text, source, origin: origin.to_owned() };
    Ok(())
}

/// Returns "; did you mean X?" if a known name is spelt much like this one.
pub(super) fn suggestion<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let closest = spelling::closest(&name.to_ascii_lowercase(), known);
    closest.map_or_else(String::new, |known| format!("; did you mean {known}?"))
}

/// Reads the file that contains a secret.
pub fn read_secret(path: impl AsRef<Path>, shown: &str) -> Result<String, ConfigError> {
    let path = path.as_ref();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let path = path.display();
        ConfigError::new(format!("{shown}: can't read {path}: {error}"))
    })?;
    // Editors end a file with a line break that isn't part of the secret.
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
