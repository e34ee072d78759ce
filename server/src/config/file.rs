//! Reads a TOML file, and keeps the line of each value.

use std::collections::BTreeMap;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::config_error::ConfigError;

/// The values of a table, by key.
pub type Table = BTreeMap<String, Item>;

/// A value, and the line of its key.
#[derive(Clone, Debug)]
pub struct Item {
    pub line: usize,
    pub value: Value,
}

#[derive(Clone, Debug)]
pub enum Value {
    /// A text, a number or a boolean, written as in an environment variable.
    Plain(String),
    List(Vec<Item>),
    Table(Table),
    /// No setting is a date.
    Date,
}

impl Item {
    /// Returns the text of a plain value, or the texts of a list joined by commas.
    pub fn text(&self) -> Option<String> {
        match &self.value {
            Value::Plain(text) => Some(text.clone()),
            Value::List(items) => {
                let items: Option<Vec<String>> = items.iter().map(Self::text).collect();
                Some(items?.join(","))
            }
            Value::Table(_) | Value::Date => None,
        }
    }
}

pub fn read(path: &Path) -> Result<Table, ConfigError> {
    let file = path.display();
    let bytes = std::fs::read(path)
        .map_err(|error| ConfigError::new(format!("can't read {file}: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.as_bytes().iter().take(error.utf8_error().valid_up_to());
        let line = valid.filter(|byte| **byte == b'\n').count() + 1;
        ConfigError::new(format!("{file}, line {line}: not valid UTF-8"))
    })?;
    parse(&text, &file.to_string())
}

/// Parses the text of a file. `file` is its name for errors.
pub fn parse(text: &str, file: &str) -> Result<Table, ConfigError> {
    let ends: Vec<usize> = text.match_indices('\n').map(|(offset, _)| offset).collect();
    let line = |offset| ends.partition_point(|end| *end < offset) + 1;
    let parsed = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or_default();
        let at = line(span.start);
        // The error's own display quotes the line, which may contain a secret. A key isn't secret,
        // so an error about a repeated key names the key.
        let what = match (error.message(), text.get(span)) {
            ("duplicate key", Some(key)) => format!("{key} is set twice"),
            (what, _) => what.to_owned(),
        };
        ConfigError::new(format!("{file}, line {at}: not valid TOML: {what}"))
    })?;
    Ok(table(parsed.into_inner(), &line))
}

fn table(table: DeTable<'_>, line: &impl Fn(usize) -> usize) -> Table {
    let items = table.into_iter().map(|(key, value)| {
        let start = key.span().start;
        (key.into_inner().into_owned(), item(value, start, line))
    });
    items.collect()
}

fn list(items: DeArray<'_>, line: &impl Fn(usize) -> usize) -> Vec<Item> {
    let items = items.into_iter().map(|value| {
        let start = value.span().start;
        item(value, start, line)
    });
    items.collect()
}

fn item(value: Spanned<DeValue<'_>>, start: usize, line: &impl Fn(usize) -> usize) -> Item {
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Plain(text.into_owned()),
        DeValue::Integer(number) => {
            let decimal = i64::from_str_radix(number.as_str(), number.radix());
            Value::Plain(decimal.map_or_else(|_| number.to_string(), |n| n.to_string()))
        }
        DeValue::Float(number) => Value::Plain(number.as_str().to_owned()),
        DeValue::Boolean(flag) => Value::Plain(flag.to_string()),
        DeValue::Array(items) => Value::List(list(items, line)),
        DeValue::Table(inner) => Value::Table(table(inner, line)),
        DeValue::Datetime(_) => Value::Date,
    };
    Item { line: line(start), value }
}
