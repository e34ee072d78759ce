//! The home country: local numbers are its numbers, written without its country code.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A code and its country in each line, as ITU-T E.164 assigns them, with the word "the" where a
/// sentence needs it.
const COUNTRIES: &str = include_str!("country_codes.txt");

/// The home country, as pages name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomeCountry {
    /// 1 to 3 digits, without `+`.
    pub code: String,
    /// `None` when no country has the code.
    name: Option<String>,
}

impl HomeCountry {
    /// The country with a code.
    pub fn of_code(code: &str) -> Self {
        let mut countries = COUNTRIES.lines().filter_map(|line| line.split_once(' '));
        let found = countries.find(|(assigned, _)| *assigned == code);
        Self {
            code: code.to_owned(),
            name: found.map(|(_, name)| name.to_owned()),
        }
    }
}

/// Its name and code, as they stand in a sentence.
impl fmt::Display for HomeCountry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} (+{})", self.code),
            None => write!(f, "the country with the code +{}", self.code),
        }
    }
}
