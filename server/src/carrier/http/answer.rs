//! Finds the outcome of a submit from the upstream's answer and the carrier's rules.

use domain::DeliveryError;
use serde_json::Value;

use super::super::error_code::with_number;
use crate::config::carriers::{AnswerRule, Meaning, MessageId, Pointer};
use crate::json::as_text;

/// The maximum number of characters of an answer that an error quotes.
const QUOTED_CHARS_MAX: usize = 60;

/// The outcome of a submit. Errors are for operators. They contain no secret, but a refusal may quote
/// the upstream. Customers see only the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpOutcome {
    /// The upstream accepted the message.
    Accepted {
        /// The upstream's ID for the message, if its answer has one.
        message_id: Option<String>,
    },
    /// Refused permanently.
    Refused { reason: String, error: String },
    /// Not accepted, because too many messages came at once.
    Throttled,
    /// Not accepted for now.
    Retry { reason: String, error: String },
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
    text: String,
    /// The JSON, or the text as a JSON string.
    body: Value,
}

/// The values that a rule found in an answer.
struct Found {
    message_id: Option<String>,
    /// The upstream's code for a refusal. The HTTP status stands for it if there is none.
    code: Option<String>,
}

impl Answer {
    pub(super) fn new(status: u16, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body).trim().to_owned();
        let body = serde_json::from_slice(body).unwrap_or_else(|_| Value::String(text.clone()));
        Self { status, text, body }
    }

    /// Returns the outcome of the first rule that matches. If no rule matches, the HTTP status
    /// decides: after 429 or another 4xx, the message wasn't accepted; after any other status, the
    /// outcome is unknown. `transid` is the message's transaction ID.
    pub(super) fn outcome(&self, rules: &[AnswerRule], transid: &str) -> HttpOutcome {
        let found = rules.iter().find_map(|rule| Some((rule, self.find(rule, transid)?)));
        let status = self.status.to_string();
        let Some((rule, found)) = found else {
            let error = format!("HTTP status {status}, for which there is no rule");
            return match self.status {
                429 => HttpOutcome::Throttled,
                400..=499 => {
                    let reason = with_number(DeliveryError::Refused, Some(&status));
                    HttpOutcome::Retry { reason, error }
                }
                _ => HttpOutcome::Unknown { error },
            };
        };
        let code = found.code.as_deref().unwrap_or(&status);
        let reason = || {
            let known = rule.errors.get(code).unwrap_or(&DeliveryError::Refused);
            with_number(*known, Some(code))
        };
        let error = || self.words(found.code.as_deref());
        match rule.outcome {
            Meaning::Accepted => HttpOutcome::Accepted { message_id: found.message_id },
            Meaning::Refused => HttpOutcome::Refused { reason: reason(), error: error() },
            Meaning::Throttled => HttpOutcome::Throttled,
            Meaning::Retry => HttpOutcome::Retry { reason: reason(), error: error() },
        }
    }

    /// Returns what a rule finds. Returns `None` if it doesn't match.
    fn find(&self, rule: &AnswerRule, transid: &str) -> Option<Found> {
        if !rule.http.contains(&self.status) {
            return None;
        }
        let value = match &rule.field {
            Some(pointer) => Some(self.value(pointer)?),
            None => None,
        };
        if rule.equals.is_some() && rule.equals != value {
            return None;
        }
        let captures = match &rule.pattern {
            Some(pattern) => Some(pattern.captures(value.as_deref().unwrap_or(&self.text))?),
            None => None,
        };
        let group = |name| {
            let found = captures.as_ref()?.name(name)?.as_str();
            (!found.is_empty()).then(|| found.to_owned())
        };
        let message_id = match &rule.message_id {
            Some(MessageId::Field(pointer)) => self.value(pointer),
            Some(MessageId::Transid) => Some(transid.to_owned()),
            None => group("id"),
        };
        let code = group("code");
        Some(Found { message_id, code: code.or(value) })
    }

    /// Returns a plain value as a text, or `None` if it is empty.
    fn value(&self, pointer: &Pointer) -> Option<String> {
        let value = self.body.pointer(&pointer.0)?;
        as_text(value).filter(|text| !text.is_empty())
    }

    /// Returns the status and the upstream's code.
    fn words(&self, code: Option<&str>) -> String {
        let quoted: String = (code.unwrap_or_default().chars())
            .filter(|c| !c.is_control())
            .take(QUOTED_CHARS_MAX)
            .collect();
        format!("HTTP status {} {quoted}", self.status).trim_end().to_owned()
    }
}
