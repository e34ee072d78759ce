//! The parameters of a request, from the query and the body.

use domain::{BulkWriting, Number, Reason};

use super::answer::Failure;
use super::form;
use crate::spelling;

/// The maximum length of an unknown name that an error message repeats. The names of parameters are
/// shorter, even misspelt.
const NAME_BYTES_MAX: usize = 32;

/// A parameter's value, by the form in which it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    Text(String),
    /// From a query or a URL-encoded form, where an unescaped `+` became a space.
    UrlDecoded(String),
    /// JSON true or false.
    Boolean(bool),
    /// A JSON number, as it is written.
    Number(String),
    /// Any other JSON value that isn't a string.
    NotText,
    /// Text that isn't UTF-8, or a JSON string with an unpaired surrogate.
    BadEncoding,
    Twice,
}

/// The known parameters of a request, and the first unknown one.
#[derive(Debug)]
pub struct Parameters {
    known: &'static [&'static str],
    given: Vec<Option<Given>>,
    unknown: Option<Unknown>,
}

/// A parameter that the route doesn't accept.
#[derive(Debug)]
struct Unknown {
    /// Empty if the name isn't text.
    name: String,
    is_url_encoded: bool,
}

impl Parameters {
    /// Parses a query. `known` lists the names that the route accepts.
    pub fn of_query(known: &'static [&'static str], query: Option<&str>) -> Self {
        let mut parameters = Self { known, given: vec![None; known.len()], unknown: None };
        parameters.add_form(query.unwrap_or_default().as_bytes());
        parameters
    }

    /// Adds the parameters of a query or a form.
    pub fn add_form(&mut self, text: &[u8]) {
        for (name, value) in form::pairs(text) {
            let given = value.map_or(Given::BadEncoding, Given::UrlDecoded);
            self.add(name.as_deref(), given);
        }
    }

    /// Adds a parameter. If `cut` is true, the value was truncated and may end inside a character.
    pub fn add_bytes(
        &mut self,
        name: Option<&str>,
        value: Vec<u8>,
        cut: bool,
        writing: BulkWriting,
    ) {
        let given = match String::from_utf8(value) {
            Ok(text) if writing == BulkWriting::UrlDecoded => Given::UrlDecoded(text),
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
        self.add(name, given);
    }

    /// Adds a parameter. The name is `None` if it isn't text.
    pub fn add(&mut self, name: Option<&str>, given: Given) {
        let place = name.and_then(|name| self.known.iter().position(|known| *known == name));
        match place {
            Some(place) => {
                let slot = &mut self.given[place];
                *slot = Some(if slot.is_some() { Given::Twice } else { given });
            }
            None if self.unknown.is_none() => {
                self.unknown = Some(Unknown {
                    name: name.unwrap_or_default().to_owned(),
                    is_url_encoded: matches!(given, Given::UrlDecoded(_)),
                });
            }
            None => {}
        }
    }

    /// Refuses an unknown parameter. A misspelt parameter that was ignored could cost money or show
    /// too much.
    ///
    /// # Errors
    /// `invalid_parameter`, with the parameter that was probably meant.
    pub fn refuse_unknown(&self) -> Result<(), Failure> {
        let Some(unknown) = &self.unknown else {
            return Ok(());
        };
        let what = match quotable(&unknown.name) {
            Some(name) => format!("{name} isn't a parameter here"),
            None => "One of the parameters isn't known here".to_owned(),
        };
        let meant = match self.meant_by_unknown() {
            Some(meant) => format!("; did you mean {meant}?"),
            None => ".".to_owned(),
        };
        let known = match self.known {
            [] => "There are none.".to_owned(),
            names => format!("Known parameters: {}.", names.join(", ")),
        };
        let ampersand =
            if unknown.is_url_encoded { " Write an & that belongs to a value as %26." } else { "" };
        let detail = format!("{what}{meant} {known}{ampersand}");
        Err(Failure::with_detail(Reason::InvalidParameter, detail))
    }

    /// Returns the known name that the unknown one probably misspells.
    fn meant_by_unknown(&self) -> Option<&'static str> {
        let name = quotable(&self.unknown.as_ref()?.name)?;
        let letters = name.chars().filter(char::is_ascii_alphanumeric);
        let name: String = letters.map(|c| c.to_ascii_lowercase()).collect();
        spelling::closest(&name, self.known.iter().copied())
    }

    /// Returns true if the request has the parameter, even with an invalid value.
    pub fn has(&self, name: &str) -> bool {
        self.slot(name).is_some()
    }

    /// Returns the value of a parameter that was given as JSON true or false.
    pub fn json_boolean(&self, name: &str) -> Option<bool> {
        match self.slot(name) {
            Some(Given::Boolean(value)) => Some(*value),
            _ => None,
        }
    }

    /// Returns the text of an optional parameter, which in JSON may also be a number, true or
    /// false.
    pub fn scalar(&self, name: &str, invalid: Reason) -> Result<Option<&str>, Failure> {
        match self.slot(name) {
            Some(Given::Boolean(value)) => Ok(Some(if *value { "true" } else { "false" })),
            Some(Given::Number(text)) => Ok(Some(text)),
            _ => self.optional(name, invalid),
        }
    }

    /// Returns the text of an optional parameter. `invalid` is the reason for a value that isn't
    /// text.
    pub fn optional(&self, name: &str, invalid: Reason) -> Result<Option<&str>, Failure> {
        match self.slot(name) {
            None => Ok(None),
            Some(Given::Text(text) | Given::UrlDecoded(text)) => Ok(Some(text)),
            Some(Given::Boolean(_) | Given::Number(_) | Given::NotText) => {
                Err(Failure::with_detail(invalid, format!("{name} must be a JSON string.")))
            }
            Some(Given::BadEncoding) => Err(Failure::with_detail(
                Reason::InvalidEncoding,
                format!("{name} isn't valid UTF-8; encode it as UTF-8 and try again."),
            )),
            Some(Given::Twice) => Err(Failure::duplicate(name)),
        }
    }

    /// Returns the text of a required parameter.
    pub fn required(&self, name: &str, invalid: Reason) -> Result<&str, Failure> {
        self.optional(name, invalid)?.ok_or_else(|| self.missing(name))
    }

    /// Returns the phone number in an optional parameter.
    pub fn number(&self, name: &str) -> Result<Option<Number>, Failure> {
        let Some(text) = self.optional(name, Reason::InvalidNumber)? else {
            return Ok(None);
        };
        let read = match self.slot(name) {
            Some(Given::UrlDecoded(_)) => Number::parse_url_decoded(text),
            _ => Number::parse(text),
        };
        read.map(Some).map_err(|_| {
            if text.trim() == text {
                return Reason::InvalidNumber.into();
            }
            let detail = "The number has a space before or after it; write its digits alone, with \
                          at most a leading +.";
            Failure::with_detail(Reason::InvalidNumber, detail)
        })
    }

    /// Returns true if the unknown parameter is probably a misspelling of `name`.
    pub fn is_misspelt(&self, name: &str) -> bool {
        self.meant_by_unknown() == Some(name)
    }

    /// Refuses a request that lacks a required parameter.
    pub fn missing(&self, name: &str) -> Failure {
        let unknown = self.unknown.as_ref();
        let detail = match unknown.filter(|_| self.is_misspelt(name)) {
            Some(unknown) => format!(
                "{name} is missing; {} isn't a parameter here. Did you mean {name}?",
                unknown.name
            ),
            None => format!("{name} is missing."),
        };
        Failure::with_detail(Reason::MissingParameter, detail)
    }

    fn slot(&self, name: &str) -> Option<&Given> {
        let place = self.known.iter().position(|known| *known == name)?;
        self.given[place].as_ref()
    }
}

/// Returns the name if error messages may repeat it, that is, if it looks like a parameter's name.
fn quotable(name: &str) -> Option<&str> {
    let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let is_word = (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_of_word);
    is_word.then_some(name)
}
