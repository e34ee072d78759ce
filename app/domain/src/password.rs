//! Rules for new passwords, and an estimate of their strength (NIST SP 800-63B, 3.1.1.2).
//!
//! Passwords in use are never checked again, so a sign-in works with any password that was accepted
//! when it was set.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The minimum number of characters in a password.
pub const PASSWORD_CHARS_MIN: usize = 10;
/// The maximum number of characters in a password. Longer ones could keep the server busy with
/// hashing.
pub const PASSWORD_CHARS_MAX: usize = 128;

/// The service's name, which attackers try first.
const SERVICE: &str = "heliograph";
/// The minimum length of the parts of an email that a password is checked for. Many passwords
/// contain shorter parts by chance.
const EMAIL_PART_CHARS_MIN: usize = 5;
/// The minimum number of characters that a password must have besides the email and the service's
/// name.
const REST_CHARS_MIN: usize = 8;
/// The maximum length of a repeated pattern, such as `ab` in `ababababab`.
const REPEATED_CHARS_MAX: usize = 4;
/// The minimum number of runs (see [`runs`]) in a password. With fewer, the password is only a
/// pattern: `qwertyasdf` has two.
const RUNS_MIN: usize = 3;
/// The rows of keys on keyboards: digits, then the letters of QWERTY, QWERTZ and AZERTY.
const ROWS: [&str; 6] =
    ["1234567890-=", "qwertyuiop", "asdfghjkl", "zxcvbnm", "qwertzuiop", "azertyuiop"];
/// Words that are common in passwords. The strength meter counts each as one character.
const WORDS: [&str; 40] = [
    "password",
    "passwort",
    "welcome",
    "letmein",
    "iloveyou",
    "football",
    "baseball",
    "superman",
    "batman",
    "sunshine",
    "princess",
    "monkey",
    "dragon",
    "master",
    "shadow",
    "admin",
    "administrator",
    "login",
    "secret",
    "changeme",
    "trustno1",
    "starwars",
    "computer",
    "michael",
    "jordan",
    "hunter",
    "summer",
    "winter",
    "spring",
    "autumn",
    "hello",
    "freedom",
    "whatever",
    "charlie",
    "cheese",
    "liverpool",
    "chelsea",
    "arsenal",
    "internet",
    "company",
];
/// The minimum numbers of unpredictable characters in a fair and in a strong password.
const FAIR_CHARS: usize = 10;
const STRONG_CHARS: usize = 14;

/// A password that meets the rules that don't depend on an email or on a list of common passwords.
/// `Debug` doesn't show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

/// Why a text can't be a new password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum InvalidPassword {
    #[error("A password has {PASSWORD_CHARS_MIN} to {PASSWORD_CHARS_MAX} characters.")]
    Length,
    #[error("This password repeats a few characters. Choose one that is hard to guess.")]
    Repeated,
    #[error(
        "This password follows the alphabet, the digits or the keyboard. Choose one that is hard \
         to guess."
    )]
    Sequence,
    #[error("This password is one of those that are tried first. Choose a less common one.")]
    Common,
    #[error("This password is made of the email. Choose one that has nothing to do with it.")]
    OfEmail,
    #[error("This password is made of the service's name. Choose another one.")]
    OfService,
}

impl Password {
    /// Validates a password and keeps it unchanged, with its white space.
    ///
    /// # Errors
    /// Returns an error if the text is too short or too long (in Unicode scalar values), repeats or
    /// follows a pattern, or is made of the service's name.
    pub fn parse(text: &str) -> Result<Self, InvalidPassword> {
        let chars = lower(text);
        // Counts the text as typed, because lower-casing can add characters.
        if !(PASSWORD_CHARS_MIN..=PASSWORD_CHARS_MAX).contains(&text.chars().count()) {
            return Err(InvalidPassword::Length);
        }
        if is_repeated(&chars) {
            return Err(InvalidPassword::Repeated);
        }
        if runs(&chars) < RUNS_MIN {
            return Err(InvalidPassword::Sequence);
        }
        if is_made_of(text, &[SERVICE]) {
            return Err(InvalidPassword::OfService);
        }
        Ok(Self(text.to_owned()))
    }

    /// Checks that the password isn't made of its account's email.
    ///
    /// # Errors
    /// Returns an error if little of the password is left without the parts of the email and the
    /// service's name.
    pub fn must_differ_from(&self, email: &str) -> Result<(), InvalidPassword> {
        let email = email.to_lowercase();
        let mut parts = parts_of(&email);
        if parts.is_empty() {
            return Ok(());
        }
        parts.push(SERVICE);
        if is_made_of(&self.0, &parts) {
            return Err(InvalidPassword::OfEmail);
        }
        Ok(())
    }

    /// Returns the password itself, for hashing.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(hidden)")
    }
}

/// Returns the parts of an email that a password must not be made of, longest first.
pub fn parts_of(email: &str) -> Vec<&str> {
    let local = email.split('@').next().unwrap_or_default();
    let pieces = email.split(|c: char| !c.is_alphanumeric());
    let mut parts: Vec<&str> = [email, local]
        .into_iter()
        .chain(pieces)
        .filter(|part| part.chars().count() >= EMAIL_PART_CHARS_MIN)
        .collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
    parts.dedup();
    parts
}

/// How hard a password is to guess. The strength meter shows this as advice. The service refuses no
/// password for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    Weak,
    Fair,
    Strong,
}

impl Strength {
    /// Rates a password by its number of unpredictable characters. A common word, a part of the
    /// email and the service's name each count as one character.
    pub fn of(text: &str, email: &str) -> Self {
        let email = email.to_lowercase();
        let mut known = parts_of(&email);
        known.push(SERVICE);
        known.extend(WORDS);
        let mut rest = text.to_lowercase();
        for word in known {
            rest = rest.replace(word, "\0");
        }
        let chars: Vec<char> = rest.chars().collect();
        match unpredictable(&chars) {
            ..FAIR_CHARS => Self::Weak,
            FAIR_CHARS..STRONG_CHARS => Self::Fair,
            _ => Self::Strong,
        }
    }

    /// Returns a sentence with the strength and the reason for it.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Weak => {
                "Weak: much of it is common or predictable. Add words that have nothing to do with \
                 each other."
            }
            Self::Fair => "Fair: a few more characters would make it much harder to guess.",
            Self::Strong => "Strong: it is long and hard to predict.",
        }
    }
}

fn lower(text: &str) -> Vec<char> {
    text.to_lowercase().chars().collect()
}

/// Whether the text only repeats a short pattern.
fn is_repeated(chars: &[char]) -> bool {
    (1..=REPEATED_CHARS_MAX).any(|period| {
        let later = chars.iter().skip(period);
        later.eq(chars.iter().take(chars.len().saturating_sub(period)))
    })
}

/// Returns the number of runs. In a run, each character follows from the one before.
fn runs(chars: &[char]) -> usize {
    let breaks = chars.windows(2).filter(|pair| !follows(pair[0], pair[1]));
    1 + breaks.count()
}

/// Returns the number of unpredictable characters. The first two characters of a run make the
/// others predictable.
fn unpredictable(chars: &[char]) -> usize {
    let mut count = chars.len().min(1);
    let mut was_predictable = false;
    for pair in chars.windows(2) {
        let is_predictable = follows(pair[0], pair[1]);
        if !(is_predictable && was_predictable) {
            count += 1;
        }
        was_predictable = is_predictable;
    }
    count
}

/// Whether one character follows from the other: both are the same, or they are neighbours in the
/// alphabet, among the digits, or on a keyboard.
fn follows(one: char, other: char) -> bool {
    let both_alike = (one.is_ascii_digit() && other.is_ascii_digit())
        || (one.is_ascii_alphabetic() && other.is_ascii_alphabetic());
    let beside = |row: &str| {
        let place = |c: char| row.chars().position(|key| key == c);
        matches!((place(one), place(other)), (Some(a), Some(b)) if a.abs_diff(b) == 1)
    };
    one == other
        || (both_alike && u32::from(one).abs_diff(u32::from(other)) == 1)
        || ROWS.into_iter().any(beside)
}

/// Whether a text contains one of the parts and has too few characters besides them.
fn is_made_of(text: &str, parts: &[&str]) -> bool {
    let text = text.to_lowercase();
    let rest = parts.iter().fold(text.clone(), |rest, part| rest.replace(part, ""));
    rest.len() < text.len() && rest.chars().count() < REST_CHARS_MIN
}
