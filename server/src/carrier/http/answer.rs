//! Finds the outcome of a submit from the upstream's answer and the carrier's rules.

use serde_json::Value;

use crate::config::carriers::{AnswerRule, Meaning, Pointer};
use crate::json::as_text;

/// The maximum number of characters of an answer that an error quotes.
const QUOTED_CHARS_MAX: usize = 60;

/// The outcome of a submit. Errors are for operators and for the message's timeline. They contain
/// no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpOutcome {
    /// The upstream accepted the message.
    Accepted {
        /// The upstream's ID for the message, if its answer has one.
        message_id: Option<String>,
    },
    /// Refused permanently, with this HTTP status.
    Refused { status: u16, error: String },
    /// Not accepted, because too many messages came at once.
    Throttled,
    /// Not accepted for now, with this HTTP status.
    Retry { status: u16, error: String },
    /// Certainly not sent, so the message may be submitted again.
    NotSent { error: String },
    /// Not sent, because the message's deadline passed before the rate limit allowed the request.
    TooLate,
    /// Sent at least in part, but no answer says whether the upstream accepted the message.
    Unknown { error: String },
}

/// HTTP status and body.
pub(super) struct Answer {
    status: u16,
    /// The JSON, or the text as a JSON string.
    body: Value,
}

impl Answer {
    pub(super) fn new(status: u16, body: &[u8]) -> Self {
        let text = || Value::String(String::from_utf8_lossy(body).trim().to_owned());
        let body = serde_json::from_slice(body).unwrap_or_else(|_| text());
        Self { status, body }
    }

    /// Returns the outcome of the first rule that matches. If no rule matches, the HTTP status
    /// decides: after 429 or another 4xx, the message wasn't accepted; after any other status, the
    /// outcome is unknown.
    pub(super) fn outcome(&self, rules: &[AnswerRule]) -> HttpOutcome {
        let Some(rule) = rules.iter().find(|rule| self.fits(rule)) else {
            let status = self.status;
            let error = format!("HTTP status {status}, for which there is no rule");
            return match status {
                429 => HttpOutcome::Throttled,
                400..=499 => HttpOutcome::Retry { status, error },
                _ => HttpOutcome::Unknown { error },
            };
        };
        match rule.outcome {
            Meaning::Accepted => HttpOutcome::Accepted {
                message_id: (rule.message_id.as_ref()).and_then(|pointer| self.value(pointer)),
            },
            Meaning::Refused => {
                HttpOutcome::Refused { status: self.status, error: self.words(rule) }
            }
            Meaning::Throttled => HttpOutcome::Throttled,
            Meaning::Retry => HttpOutcome::Retry { status: self.status, error: self.words(rule) },
        }
    }

    fn fits(&self, rule: &AnswerRule) -> bool {
        let field_fits = |pointer: &Pointer| match (self.value(pointer), &rule.equals) {
            (Some(value), Some(equals)) => value == *equals,
            (found, None) => found.is_some(),
            (None, Some(_)) => false,
        };
        rule.http.contains(&self.status) && rule.field.as_ref().is_none_or(field_fits)
    }

    /// Returns a plain value as a text, or `None` if it is empty.
    fn value(&self, pointer: &Pointer) -> Option<String> {
        let value = self.body.pointer(&pointer.0)?;
        as_text(value).filter(|text| !text.is_empty())
    }

    /// Returns the status, and the value that the rule checked.
    fn words(&self, rule: &AnswerRule) -> String {
        let value = rule.field.as_ref().and_then(|pointer| self.value(pointer));
        let quoted: String = (value.iter().flat_map(|text| text.chars()))
            .filter(|c| !c.is_control())
            .take(QUOTED_CHARS_MAX)
            .collect();
        format!("HTTP status {} {quoted}", self.status).trim_end().to_owned()
    }
}
