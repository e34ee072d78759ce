//! Reads one table of the settings file, key by key, and collects all its problems.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use super::super::file::{Item, Table, Value};
use super::super::layers::{Source, read_secret, suggestion};
use super::super::secret::Secret;
use crate::tls::TlsFiles;

/// The findings from all tables.
#[derive(Default)]
pub struct Findings {
    /// Sentences, each of which names the table and the key.
    pub problems: Vec<String>,
    /// Every setting in force, secrets masked.
    pub shown: Vec<(String, String, Source)>,
}

/// A table that is being read. A getter that finds a problem adds it to the findings and returns
/// nothing. If there is any problem, none of the tables is used.
pub struct Fields<'a> {
    /// The table's name in the texts of problems, like `[[carrier]] acme`.
    place: String,
    /// The table's name in `heliograph config`, like `carrier.acme`.
    path: String,
    /// The line of the table's header.
    line: usize,
    table: Table,
    /// The keys that were requested, each with its line if it is set.
    requested: Vec<(String, Option<usize>)>,
    findings: &'a mut Findings,
}

impl<'a> Fields<'a> {
    pub fn new(
        place: String,
        path: String,
        (line, table): (usize, Table),
        findings: &'a mut Findings,
    ) -> Self {
        Self { place, path, line, table, requested: Vec::new(), findings }
    }

    /// Adds a problem. If the sentence begins with a key, the problem gets the line of that key.
    /// The key may be followed by a dot and the name of an entry.
    pub fn problem(&mut self, sentence: &str) {
        let key = sentence.split([' ', '.']).next().unwrap_or_default();
        let requested = self.requested.iter().find(|(name, _)| name == key);
        let line = requested.and_then(|(_, line)| *line).unwrap_or(self.line);
        let place = &self.place;
        let problem = format!("line {line}, {place}: {sentence}");
        self.findings.problems.push(problem);
    }

    fn take(&mut self, name: &str) -> Option<Item> {
        let item = self.table.remove(name);
        let line = item.as_ref().map(|item| item.line);
        self.requested.push((name.to_owned(), line));
        item
    }

    fn show(&mut self, name: &str, text: String, source: Source) {
        let name = format!("{}.{name}", self.path);
        self.findings.shown.push((name, text, source));
    }

    /// Whether a value is a table.
    pub fn is_table(&self, name: &str) -> bool {
        matches!(self.table.get(name), Some(Item { value: Value::Table(_), .. }))
    }

    fn text(&mut self, name: &str) -> Option<String> {
        if let Value::Plain(text) = self.take(name)?.value {
            return Some(text);
        }
        self.problem(&format!("{name} must be a plain value"));
        None
    }

    /// Reads a value that is required or has a default.
    pub fn parsed<T>(
        &mut self,
        name: &str,
        default: Option<&str>,
        wanted: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        if !self.table.contains_key(name) {
            self.requested.push((name.to_owned(), None));
            let Some(default) = default else {
                self.problem(&format!("{name} is missing; it must be {wanted}"));
                return None;
            };
            self.show(name, default.to_owned(), Source::Default);
            return parse(default);
        }
        self.optional(name, wanted, parse)
    }

    /// Reads an optional value.
    pub fn optional<T>(
        &mut self,
        name: &str,
        wanted: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(name)?;
        let value = self.read(name, &text, wanted, parse);
        self.show(name, text, Source::File);
        value
    }

    /// Reads an optional value that may contain a password.
    pub fn hidden<T>(
        &mut self,
        name: &str,
        wanted: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(name)?;
        self.show(name, "***".to_owned(), Source::File);
        self.read(name, &text, wanted, parse)
    }

    fn read<T>(
        &mut self,
        name: &str,
        text: &str,
        wanted: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let value = parse(text);
        if value.is_none() {
            self.problem(&format!("{name} must be {wanted}"));
        }
        value
    }

    /// Reads the path of a PEM file of certificates, and checks that the file can be read now.
    pub fn authorities(&mut self, name: &str) -> Option<PathBuf> {
        self.optional(name, "a PEM file with certificates", |path| {
            crate::tls::authorities(path.as_ref()).ok()?;
            Some(PathBuf::from(path))
        })
    }

    /// Reads the paths of a certificate and its key, in PEM, and checks that they fit together.
    pub fn identity(&mut self, cert: &str, key: &str) -> Option<TlsFiles> {
        let mut path = |name: &str| self.optional(name, "a PEM file", |path| Some(path.into()));
        match (path(cert), path(key)) {
            (Some(cert_file), Some(key_file)) => {
                let files = TlsFiles { cert: cert_file, key: key_file };
                if let Err(error) = crate::tls::check_client(&files) {
                    self.problem(&format!("{cert} and {key} can't be used: {error}"));
                    return None;
                }
                Some(files)
            }
            (None, None) => None,
            _ => {
                self.problem(&format!("{cert} and {key} must be set together"));
                None
            }
        }
    }

    /// Reads a list of plain values. A single value counts as a list of one.
    pub fn list(&mut self, name: &str) -> Vec<String> {
        let Some(items) = self.items(name) else {
            return Vec::new();
        };
        let texts: Option<Vec<String>> = items.iter().map(Item::text).collect();
        let Some(texts) = texts else {
            self.problem(&format!("{name} must be a list of plain values"));
            return Vec::new();
        };
        self.show(name, texts.join(", "), Source::File);
        texts
    }

    /// Reads a table of names and plain values.
    pub fn map(&mut self, name: &str) -> Vec<(String, String)> {
        self.entries(name, str::to_owned)
    }

    /// Reads a table of names and plain values that may contain a password.
    pub fn hidden_map(&mut self, name: &str) -> Vec<(String, String)> {
        self.entries(name, |_| "***".to_owned())
    }

    fn entries(&mut self, name: &str, shown: fn(&str) -> String) -> Vec<(String, String)> {
        let Some(item) = self.take(name) else {
            return Vec::new();
        };
        let entries = match item.value {
            Value::Table(table) => (table.into_iter())
                .map(|(key, item)| Some((key, item.text()?)))
                .collect::<Option<Vec<_>>>(),
            _ => None,
        };
        let Some(entries) = entries else {
            self.problem(&format!("{name} must be a table of plain values"));
            return Vec::new();
        };
        for (key, text) in &entries {
            self.show(&format!("{name}.{key}"), shown(text), Source::File);
        }
        entries
    }

    pub fn table<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Fields<'_>) -> Option<T>,
    ) -> Option<T> {
        let item = self.take(name)?;
        if let Value::Table(table) = item.value {
            return read(self.inner(name, (item.line, table)));
        }
        self.problem(&format!("{name} must be a table"));
        None
    }

    /// Reads the list of tables under a name in this table. A single table counts as a list of one.
    pub fn tables<T>(&mut self, name: &str, read: impl Fn(Fields<'_>) -> Option<T>) -> Vec<T> {
        let Some(items) = self.items(name) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for (number, item) in (1..).zip(items) {
            if let Value::Table(table) = item.value {
                let table = (item.line, table);
                found.extend(read(self.inner(&format!("{name}.{number}"), table)));
            } else {
                self.problem(&format!("{name} must be [[carrier.{name}]] tables"));
            }
        }
        found
    }

    /// Returns the items of a list. A single item counts as a list of one.
    fn items(&mut self, name: &str) -> Option<Vec<Item>> {
        let item = self.take(name)?;
        Some(match item.value {
            Value::List(items) => items,
            _ => vec![item],
        })
    }

    fn inner(&mut self, name: &str, table: (usize, Table)) -> Fields<'_> {
        Fields::new(
            format!("{}, {name}", self.place),
            format!("{}.{name}", self.path),
            table,
            &mut *self.findings,
        )
    }

    pub fn within<T>(&mut self, name: &str, default: &str, allowed: &RangeInclusive<T>) -> Option<T>
    where
        T: FromStr + PartialOrd + std::fmt::Display,
    {
        let (least, most) = (allowed.start(), allowed.end());
        let wanted = format!("a whole number from {least} to {most}");
        self.parsed(name, Some(default), &wanted, |text| {
            text.parse().ok().filter(|value| allowed.contains(value))
        })
    }

    /// Reads one of several words, each of which stands for a value.
    pub fn choice<T: Clone>(
        &mut self,
        name: &str,
        default: Option<&str>,
        words: &[(&str, T)],
    ) -> Option<T> {
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let (last, others) = names.split_last()?;
        let wanted = format!("{} or {last}", others.join(", "));
        self.parsed(name, default, &wanted, |text| {
            let (_, value) = words.iter().find(|(word, _)| *word == text)?;
            Some(value.clone())
        })
    }

    /// Reads a table of names and words, each of which stands for a value.
    pub fn words<T: Clone>(&mut self, name: &str, words: &[(&str, T)]) -> BTreeMap<String, T> {
        let Some(item) = self.take(name) else {
            return BTreeMap::new();
        };
        let Value::Table(table) = item.value else {
            self.problem(&format!("{name} must be a table like {{ \"NAME\" = \"word\" }}"));
            return BTreeMap::new();
        };
        let mut read = BTreeMap::new();
        for (key, item) in table {
            let text = item.text().unwrap_or_default();
            if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
                self.show(&format!("{name}.{key}"), text, Source::File);
                read.insert(key, value.clone());
            } else {
                let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                let names = names.join(", ");
                self.problem(&format!("{name}.{key} must be one of {names}"));
            }
        }
        read
    }

    /// Reads an optional secret: either `name` itself, or the content of the file that `name_file`
    /// names.
    pub fn secret(&mut self, name: &str) -> Option<Secret> {
        let file = format!("{name}_file");
        let secret = match (self.text(name), self.text(&file)) {
            (Some(_), Some(_)) => {
                self.problem(&format!("{name} is set twice: as a value and as a file"));
                return None;
            }
            (Some(text), None) => text,
            (None, Some(path)) => match read_secret(&path, &file) {
                Ok(text) => text,
                Err(error) => {
                    self.problem(&error.to_string());
                    return None;
                }
            },
            (None, None) => return None,
        };
        self.show(name, "***".to_owned(), Source::File);
        Some(Secret::new(secret))
    }

    /// Reads a secret that must be set. An empty secret counts as set.
    pub fn required_secret(&mut self, name: &str) -> Option<Secret> {
        let file = format!("{name}_file");
        if !self.table.contains_key(name) && !self.table.contains_key(&file) {
            self.problem(&format!("{name} (or {file}) is missing"));
            return None;
        }
        self.secret(name)
    }

    /// Reports the keys that no getter read.
    pub fn finish(mut self) {
        for (name, item) in std::mem::take(&mut self.table) {
            let known = self.requested.iter().map(|(known, _)| known.as_str());
            let suggestion = suggestion(&name, known);
            self.line = item.line;
            self.problem(&format!("unknown setting {name}{suggestion}"));
        }
    }
}
