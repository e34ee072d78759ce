//! The parameters of a request, from query and body together.

use domain::Reason;

use super::answer::Failure;
use super::form;

/// How a parameter was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    Text(String),
    /// JSON's true or false.
    Boolean(bool),
    /// Another JSON value that is no string.
    NotText,
    /// Not UTF-8, or a JSON string with half of a surrogate pair.
    BadEncoding,
    Twice,
}

/// The parameters with a known name; of the others only the first one's name.
#[derive(Debug)]
pub struct Parameters {
    known: &'static [&'static str],
    given: Vec<Option<Given>>,
    unknown: Option<String>,
}

impl Parameters {
    /// Reads the query.
    pub fn of_query(known: &'static [&'static str], query: Option<&str>) -> Self {
        let mut parameters = Self {
            known,
            given: vec![None; known.len()],
            unknown: None,
        };
        parameters.add_form(query.unwrap_or_default().as_bytes());
        parameters
    }

    /// Adds a query's or a form's.
    pub fn add_form(&mut self, text: &[u8]) {
        for (name, value) in form::pairs(text) {
            let given = value.map_or(Given::BadEncoding, Given::Text);
            self.add(name.as_deref(), given);
        }
    }

    /// Adds one of the known parameters, of which the end may have been cut off.
    pub fn add_bytes(&mut self, name: &str, value: Vec<u8>, cut: bool) {
        let given = match String::from_utf8(value) {
            Ok(text) => Given::Text(text),
            Err(error) => match (cut, error.utf8_error()) {
                (true, fault) if fault.error_len().is_none() => {
                    let mut value = error.into_bytes();
                    value.truncate(fault.valid_up_to());
                    Given::Text(String::from_utf8(value).unwrap_or_default())
                }
                _ => Given::BadEncoding,
            },
        };
        self.add(Some(name), given);
    }

    /// Adds one; the name is `None` when it isn't text.
    pub fn add(&mut self, name: Option<&str>, given: Given) {
        let place = name.and_then(|name| self.known.iter().position(|known| *known == name));
        match place {
            Some(place) => {
                let slot = &mut self.given[place];
                *slot = Some(if slot.is_some() { Given::Twice } else { given });
            }
            None if self.unknown.is_none() => {
                self.unknown = Some(name.unwrap_or_default().to_owned());
            }
            None => {}
        }
    }

    /// The first name that isn't known; empty when it isn't text.
    pub fn unknown(&self) -> Option<&str> {
        self.unknown.as_deref()
    }

    /// The known names.
    pub const fn known(&self) -> &'static [&'static str] {
        self.known
    }

    /// Whether the parameter came at all, however wrong.
    pub fn has(&self, name: &str) -> bool {
        self.slot(name).is_some()
    }

    /// The value of a parameter that came as JSON's true or false.
    pub fn json_boolean(&self, name: &str) -> Option<bool> {
        match self.slot(name) {
            Some(Given::Boolean(value)) => Some(*value),
            _ => None,
        }
    }

    /// The text of a parameter that may be absent. `invalid` is the reason for a value of a wrong
    /// kind.
    pub fn optional(&self, name: &str, invalid: Reason) -> Result<Option<&str>, Failure> {
        match self.slot(name) {
            None => Ok(None),
            Some(Given::Text(text)) => Ok(Some(text)),
            Some(Given::Boolean(_) | Given::NotText) => Err(Failure::with_detail(
                invalid,
                format!("{name} must be a JSON string."),
            )),
            Some(Given::BadEncoding) => Err(Failure::with_detail(
                Reason::InvalidEncoding,
                format!("{name} isn't valid UTF-8; encode it as UTF-8 and try again."),
            )),
            Some(Given::Twice) => Err(Failure::duplicate(name)),
        }
    }

    /// The text of a parameter that must be there.
    pub fn required(&self, name: &str, invalid: Reason) -> Result<&str, Failure> {
        self.optional(name, invalid)?.ok_or_else(|| {
            Failure::with_detail(Reason::MissingParameter, format!("{name} is missing."))
        })
    }

    fn slot(&self, name: &str) -> Option<&Given> {
        let place = self.known.iter().position(|known| *known == name)?;
        self.given[place].as_ref()
    }
}
