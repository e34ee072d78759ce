//! How numbers and senders are written for a carrier that wants another form than ours.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// The rules of a carrier or a route. A rule that is `None` changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewriting {
    pub number: Option<NumberRule>,
    pub sender: Option<SenderRule>,
}

/// Replaces the beginning of a number. Leaves alone the numbers that don't begin with `strip`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberRule {
    /// The digits to take away. May be empty.
    pub strip: String,
    /// The beginning of the new number: digits, with or without a leading `+`. May be empty.
    pub add: String,
}

/// Replaces senders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SenderRule {
    /// Every message has this sender.
    Fixed(String),
    /// The carrier's names, by ours in lower case. Other senders stay as they are.
    Table(BTreeMap<String, String>),
}

impl NumberRule {
    /// Returns a number as the carrier gets it.
    pub fn apply<'a>(&self, number: &'a str) -> Cow<'a, str> {
        match number.strip_prefix(&*self.strip) {
            Some(rest) => Cow::Owned(format!("{}{rest}", self.add)),
            None => Cow::Borrowed(number),
        }
    }

    /// Returns the number that the carrier may mean by `written`. Some carriers leave out the `+`.
    pub fn undo(&self, written: &str) -> Option<String> {
        let added = self.add.trim_start_matches('+');
        let rest = written.trim_start_matches('+').strip_prefix(added)?;
        Some(format!("{}{rest}", self.strip))
    }
}

impl SenderRule {
    /// Returns a sender as the carrier gets it.
    pub fn apply<'a>(&'a self, sender: &'a str) -> &'a str {
        match self {
            Self::Fixed(fixed) => fixed,
            Self::Table(names) => names.get(&sender.to_ascii_lowercase()).map_or(sender, |n| n),
        }
    }
}

impl Rewriting {
    /// Returns these rules, completed by those of `other`.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self {
            number: self.number.as_ref().or(other.number.as_ref()).cloned(),
            sender: self.sender.as_ref().or(other.sender.as_ref()).cloned(),
        }
    }

    pub const fn is_empty(&self) -> bool {
        self.number.is_none() && self.sender.is_none()
    }

    /// Returns a number as the carrier gets it.
    pub fn number<'a>(&self, number: &'a str) -> Cow<'a, str> {
        self.number.as_ref().map_or(Cow::Borrowed(number), |rule| rule.apply(number))
    }

    /// Returns a sender as the carrier gets it.
    pub fn sender<'a>(&'a self, sender: &'a str) -> &'a str {
        self.sender.as_ref().map_or(sender, |rule| rule.apply(sender))
    }
}
