//! Reads one table of the settings file, key by key, and remembers everything that is wrong with
//! it.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use super::super::layers::{Source, read_secret, scalar};
use super::super::secret::Secret;

/// What all tables come to.
#[derive(Default)]
pub struct Findings {
    /// A sentence each, naming table and key.
    pub problems: Vec<String>,
    /// Every setting in force, secrets masked.
    pub shown: Vec<(String, String, Source)>,
}

/// A table that is being read. A getter that finds something wrong says so in the findings and
/// returns nothing: where something is wrong, nothing of the tables is used.
pub struct Fields<'a> {
    /// As problems name the table, like `[[carrier]] acme`.
    place: String,
    /// As `heliograph config` names it, like `carrier.acme`.
    path: String,
    table: toml::Table,
    findings: &'a mut Findings,
}

impl<'a> Fields<'a> {
    pub const fn new(
        place: String,
        path: String,
        table: toml::Table,
        findings: &'a mut Findings,
    ) -> Self {
        Self {
            place,
            path,
            table,
            findings,
        }
    }

    pub fn problem(&mut self, sentence: &str) {
        let place = &self.place;
        self.findings.problems.push(format!("{place}: {sentence}"));
    }

    fn show(&mut self, name: &str, text: String, source: Source) {
        let name = format!("{}.{name}", self.path);
        self.findings.shown.push((name, text, source));
    }

    fn text(&mut self, name: &str) -> Option<String> {
        let value = self.table.remove(name)?;
        let text = scalar(&value).filter(|_| !value.is_array());
        if text.is_none() {
            self.problem(&format!("{name} must be a plain value"));
        }
        text
    }

    /// A value that must be there, or has a default.
    pub fn parsed<T>(
        &mut self,
        name: &str,
        default: Option<&str>,
        wanted: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        if !self.table.contains_key(name) {
            let Some(default) = default else {
                self.problem(&format!("{name} is missing; it must be {wanted}"));
                return None;
            };
            self.show(name, default.to_owned(), Source::Default);
            return parse(default);
        }
        self.optional(name, wanted, parse)
    }

    /// A value that may be absent.
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

    /// A value that may be absent, and in which somebody may have written a password.
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

    /// A PEM file of certificates that can be read now.
    pub fn authorities(&mut self, name: &str) -> Option<PathBuf> {
        self.optional(name, "a PEM file with certificates", |path| {
            crate::tls::authorities(path.as_ref()).ok()?;
            Some(PathBuf::from(path))
        })
    }

    /// A list of plain values, or one of them.
    pub fn list(&mut self, name: &str) -> Vec<String> {
        let items = match self.table.remove(name) {
            None => return Vec::new(),
            Some(toml::Value::Array(items)) => items,
            Some(item) => vec![item],
        };
        let texts: Option<Vec<String>> = items.iter().map(scalar).collect();
        let Some(texts) = texts else {
            self.problem(&format!("{name} must be a list of plain values"));
            return Vec::new();
        };
        self.show(name, texts.join(", "), Source::File);
        texts
    }

    /// Names and plain values, none of which is shown.
    pub fn map(&mut self, name: &str) -> Vec<(String, String)> {
        let entries = match self.table.remove(name) {
            None => return Vec::new(),
            Some(toml::Value::Table(table)) => (table.into_iter())
                .map(|(key, value)| Some((key, scalar(&value)?)))
                .collect::<Option<Vec<_>>>(),
            Some(_) => None,
        };
        let Some(entries) = entries else {
            self.problem(&format!("{name} must be a table of plain values"));
            return Vec::new();
        };
        for (key, _) in &entries {
            self.show(&format!("{name}.{key}"), "***".to_owned(), Source::File);
        }
        entries
    }

    /// A table in this one.
    pub fn table<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Fields<'_>) -> Option<T>,
    ) -> Option<T> {
        if let toml::Value::Table(table) = self.table.remove(name)? {
            return read(self.inner(name, table));
        }
        self.problem(&format!("{name} must be a table"));
        None
    }

    /// The tables that stand under a name in this one, in order; one may stand there alone.
    pub fn tables<T>(&mut self, name: &str, read: impl Fn(Fields<'_>) -> Option<T>) -> Vec<T> {
        let items = match self.table.remove(name) {
            None => return Vec::new(),
            Some(toml::Value::Array(items)) => items,
            Some(item) => vec![item],
        };
        let mut found = Vec::new();
        for (place, item) in (1..).zip(items) {
            if let toml::Value::Table(table) = item {
                found.extend(read(self.inner(&format!("{name}.{place}"), table)));
            } else {
                self.problem(&format!("{name} must be [[carrier.{name}]] tables"));
            }
        }
        found
    }

    fn inner(&mut self, name: &str, table: toml::Table) -> Fields<'_> {
        Fields {
            place: format!("{}, {name}", self.place),
            path: format!("{}.{name}", self.path),
            table,
            findings: &mut *self.findings,
        }
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

    /// One of some words, each of which stands for a value.
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

    /// A secret, or the content of the file that `name_file` names; none of both is fine.
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

    /// A secret that must be there, even if empty.
    pub fn required_secret(&mut self, name: &str) -> Option<Secret> {
        let file = format!("{name}_file");
        if !self.table.contains_key(name) && !self.table.contains_key(&file) {
            self.problem(&format!("{name} (or {file}) is missing"));
            return None;
        }
        self.secret(name)
    }

    /// What nobody asked for isn't a setting.
    pub fn finish(mut self) {
        for name in std::mem::take(&mut self.table).keys() {
            self.problem(&format!("unknown setting {name}"));
        }
    }
}
