//! Reads one table of the settings file, key by key, and remembers everything that is wrong with it.

use std::ops::RangeInclusive;
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

/// A table that is being read. A getter that finds something wrong says so in the findings and returns
/// nothing: where something is wrong, nothing of the tables is used.
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
        let value = parse(&text);
        if value.is_none() {
            self.problem(&format!("{name} must be {wanted}"));
        }
        self.show(name, text, Source::File);
        value
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

    pub fn flag(&mut self, name: &str, default: &str) -> Option<bool> {
        self.parsed(name, Some(default), "true or false", |text| {
            text.parse().ok()
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
