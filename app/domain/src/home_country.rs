//! The home country. Local numbers are numbers of the home country, written without its country
//! code.

use std::collections::HashSet;
use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// One country per line with its code, as assigned by ITU-T E.164. The name includes "the" if a
/// sentence needs it.
const COUNTRIES: &str = include_str!("country_codes.txt");

static CODES: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| COUNTRIES.lines().filter_map(|line| Some(line.split_once(' ')?.0)).collect());

/// Returns the code of the country that an international number, without `+`, belongs to. Returns
/// `None` if the number belongs to no country. No code begins with another one.
pub fn country_code_of(number: &str) -> Option<&'static str> {
    let codes = (1..=3).filter_map(|digits| CODES.get(number.get(..digits)?));
    codes.copied().next()
}

/// The home country, as shown on pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomeCountry {
    /// 1 to 3 digits, without `+`.
    pub code: String,
    /// `None` if no country has the code.
    name: Option<String>,
}

impl HomeCountry {
    /// Returns the country of a number, as carriers get it. The code is empty if the number belongs
    /// to no country.
    pub fn of_number(digits: &str) -> Self {
        let codes = COUNTRIES.lines().filter_map(|line| line.split_once(' '));
        let found = codes.filter(|(code, _)| digits.starts_with(code));
        Self::of_code(found.map(|(code, _)| code).max_by_key(|code| code.len()).unwrap_or_default())
    }

    pub fn of_code(code: &str) -> Self {
        let mut countries = COUNTRIES.lines().filter_map(|line| line.split_once(' '));
        let found = countries.find(|(assigned, _)| *assigned == code);
        Self { code: code.to_owned(), name: found.map(|(_, name)| name.to_owned()) }
    }
}

/// Displays the name and code in a form that fits into a sentence.
impl fmt::Display for HomeCountry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} (+{})", self.code),
            None => write!(f, "the country with the code +{}", self.code),
        }
    }
}
