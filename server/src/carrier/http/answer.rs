//! Finds the outcome of a submit from the carrier's answer and the carrier's rules.

use std::time::{Duration, SystemTime};

use axum::http::header;
use domain::DeliveryError;
use reqwest::{Response, Url};
use serde_json::Value;

use super::super::escaped;
use super::fault::{HttpFault, HttpFaultKind};
use super::submit::HttpSubmit;
use crate::config::carriers::{AnswerRule, Meaning, MessageId, Pointer};
use crate::json::as_text;
use crate::retry_after::retry_after;

/// The maximum number of characters of a code or header that an error quotes.
const QUOTED_CHARS_MAX: usize = 60;
/// The maximum number of characters of a body that an error quotes.
const BODY_CHARS_MAX: usize = 100;
/// The number of a body's first bytes that are kept, and of the characters of their escaped form.
const KEPT_BYTES: usize = 512;
/// How many last digits of a number are searched for. Its national form has them, too.
const NUMBER_TAIL: usize = 7;
/// The length of the excerpts of a message that are searched for in an answer. Shorter ones could
/// be in an answer by chance.
const EXCERPT: usize = 12;
/// The maximum length of the name of an HTML entity with its semicolon.
const ENTITY_MAX: usize = 9;
/// The minimum number of letters and digits of a message that are searched for.
const EXCERPT_MIN: usize = 4;

/// The outcome of a submit. Customers see the reason. The error is for operators: it can quote the
/// carrier, but contains no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpOutcome {
    /// The carrier accepted the message.
    Accepted {
        /// The carrier's ID for the message, if its answer has one.
        message_id: Option<String>,
    },
    /// Refused permanently.
    Refused { reason: String, error: HttpFault },
    /// Not accepted, because too many messages came at once. The carrier asks us to wait for
    /// `after`.
    Throttled { error: HttpFault, after: Duration },
    /// Not accepted. The carrier refuses all messages of the account.
    Held { reason: String, error: HttpFault },
    /// Not accepted for now.
    Retry { reason: String, error: HttpFault },
    /// Certainly not sent, so the message may be submitted again.
    NotSent { error: HttpFault },
    /// Not sent, because the message's deadline passed before the rate limit allowed the request.
    TooLate,
    /// Sent at least in part, but no answer says whether the carrier accepted the message.
    Unknown { error: HttpFault },
}

/// An answer as the carrier wrote it, for staff. It contains nothing private.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenAnswer {
    pub status: u16,
    /// The HTTP status, the content type and the beginning of the body. Bytes of the body other
    /// than printable ASCII are escaped.
    pub text: String,
}

/// The status and the headers of an answer.
pub(super) struct Head {
    status: u16,
    content_type: String,
    /// The scheme, host and port of `Location`. The rest of the URL may contain a secret.
    leads_to: Option<String>,
    /// How long we should wait before the next request.
    retry_after: Option<Duration>,
}

impl Head {
    pub(super) fn of(response: &Response) -> Self {
        let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let leads_to = text(header::LOCATION).and_then(|to| response.url().join(to).ok());
        Self {
            status: response.status().as_u16(),
            content_type: text(header::CONTENT_TYPE).unwrap_or_default().to_owned(),
            leads_to: leads_to.filter(Url::has_host).map(|url| url.origin().ascii_serialization()),
            retry_after: text(header::RETRY_AFTER)
                .and_then(|text| retry_after(text, SystemTime::now())),
        }
    }
}

/// HTTP status and body.
pub(super) struct Answer {
    head: Head,
    /// The first bytes of the body.
    beginning: Vec<u8>,
    text: String,
    /// The JSON, or the text as a JSON string.
    body: Value,
}

/// The values that a rule found in an answer.
struct Found {
    message_id: Option<String>,
    /// The carrier's code: the group `code` of the pattern, or else the field's value.
    code: Option<String>,
}

impl Answer {
    pub(super) fn new(head: Head, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body).trim().to_owned();
        let beginning = body[..body.len().min(KEPT_BYTES)].to_owned();
        let body = serde_json::from_slice(body).unwrap_or_else(|_| Value::String(text.clone()));
        Self { head, beginning, text, body }
    }

    /// Returns the answer for staff, without the whole body if that may contain the message, its
    /// number, a one-time code or a secret. Heliograph can't tell which part of a body is safe.
    pub(super) fn written(&self, submit: &HttpSubmit, secrets: &[String]) -> WrittenAnswer {
        let mut text = format!("HTTP status {}", self.head.status);
        if !self.head.content_type.is_empty() {
            text = format!("{text}; {}", quoted(&self.head.content_type, QUOTED_CHARS_MAX));
        }
        if self.contains_private(submit, secrets) {
            text +=
                "; the body isn't kept, because it may contain the number, the message or a secret";
        } else if self.beginning.is_empty() {
            text += "; no body";
        } else {
            text = format!("{text}: {}", escaped(&self.beginning, KEPT_BYTES));
        }
        WrittenAnswer { status: self.head.status, text }
    }

    /// Returns the outcome of the first rule that matches. If no rule matches, the HTTP status
    /// decides. After 429 or another 4xx, the message wasn't accepted; 401 and 403 concern all
    /// messages. After any other status, the outcome is unknown. The secrets are never quoted.
    pub(super) fn outcome(
        &self,
        rules: &[AnswerRule],
        submit: &HttpSubmit,
        secrets: &[String],
    ) -> HttpOutcome {
        let found = rules.iter().find_map(|rule| Some((rule, self.find(rule, &submit.transid)?)));
        let Some((rule, found)) = found else {
            return self.without_rule(self.unruled(submit, secrets));
        };
        let status = self.head.status.to_string();
        let value = found.code.as_deref();
        // With `equals`, the rule already says what the value is. A value with a digit is the
        // carrier's code, which operators and customers may need.
        let says_more =
            |value: &&str| rule.equals.is_none() || value.bytes().any(|b| b.is_ascii_digit());
        let code = value.map_or(Some(status.as_str()), |value| Some(value).filter(says_more));
        let reason = || {
            let known = rule.errors.get(value.unwrap_or(&status));
            known.unwrap_or(&DeliveryError::Refused).with_number(code)
        };
        let error = |kind| {
            // No API uses this status for a single message.
            let kind = if self.head.status == 401 { HttpFaultKind::AccessRefused } else { kind };
            let is_public = |code: &&str| {
                let as_json = Value::String((*code).to_owned());
                !submit.is_secret
                    && (code.len() < NUMBER_TAIL
                        || !contains_private((code, &as_json), submit, secrets))
            };
            let quoted = value.and(code).filter(is_public);
            HttpFault::new(kind, self.words(quoted) + &self.quote(submit, secrets))
        };
        match rule.outcome {
            Meaning::Accepted => HttpOutcome::Accepted { message_id: found.message_id },
            Meaning::Refused => HttpOutcome::Refused {
                reason: reason(),
                error: error(HttpFaultKind::MessageRefused),
            },
            Meaning::Throttled => self.throttled(error(HttpFaultKind::Throttled)),
            Meaning::Retry => HttpOutcome::Retry {
                reason: reason(),
                error: error(HttpFaultKind::MessageDeferred),
            },
            Meaning::Hold => {
                HttpOutcome::Held { reason: reason(), error: error(HttpFaultKind::MessagesHeld) }
            }
        }
    }

    /// Returns the outcome of an answer that no rule matches.
    fn without_rule(&self, error: HttpFault) -> HttpOutcome {
        let reason = DeliveryError::Refused.with_number(Some(&self.head.status.to_string()));
        match self.head.status {
            429 => self.throttled(error),
            401 | 403 => HttpOutcome::Held { reason, error },
            400..=499 => HttpOutcome::Retry { reason, error },
            _ => HttpOutcome::Unknown { error },
        }
    }

    /// Returns the values that a rule finds. Returns `None` if it doesn't match.
    fn find(&self, rule: &AnswerRule, transid: &str) -> Option<Found> {
        if !rule.http.contains(&self.head.status) {
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

    /// Returns the fault of an answer that no rule matches.
    fn unruled(&self, submit: &HttpSubmit, secrets: &[String]) -> HttpFault {
        let kind = HttpFaultKind::of_status(self.head.status);
        let mut detail = format!("HTTP status {}, for which there is no rule", self.head.status);
        match &self.head.leads_to {
            Some(address) if kind == HttpFaultKind::Redirected => {
                detail = format!("{detail}; it leads to {}", quoted(address, QUOTED_CHARS_MAX));
            }
            _ => detail += &self.quote(submit, secrets),
        }
        HttpFault::new(kind, detail)
    }

    fn throttled(&self, error: HttpFault) -> HttpOutcome {
        HttpOutcome::Throttled { error, after: self.head.retry_after.unwrap_or_default() }
    }

    /// Returns `Retry-After`, the content type and the beginning of the body, for the end of a
    /// detail. Leaves out a body that may contain the message, its number or a secret.
    fn quote(&self, submit: &HttpSubmit, secrets: &[String]) -> String {
        let mut quote = String::new();
        if let Some(after) = self.head.retry_after {
            quote = format!("; Retry-After: {} s", after.as_secs());
        }
        if !self.head.content_type.is_empty() {
            quote = format!("{quote}; {}", quoted(&self.head.content_type, QUOTED_CHARS_MAX));
        }
        if !self.text.is_empty() && !self.contains_private(submit, secrets) {
            quote = format!("{quote}: {}", quoted(&self.text, BODY_CHARS_MAX));
        }
        quote
    }

    /// Whether the body may contain something private.
    fn contains_private(&self, submit: &HttpSubmit, secrets: &[String]) -> bool {
        contains_private((&self.text, &self.body), submit, secrets)
    }

    /// Returns the status and the carrier's code.
    fn words(&self, code: Option<&str>) -> String {
        let quoted = quoted(code.unwrap_or_default(), QUOTED_CHARS_MAX);
        format!("HTTP status {} {quoted}", self.head.status).trim_end().to_owned()
    }
}

/// Whether a text, also given as JSON, may contain a part of the message, its number or a secret.
/// Always true for a one-time code, and for a message with few ASCII letters and digits: excerpts
/// can't show whether the text quotes it.
fn contains_private((text, json): (&str, &Value), submit: &HttpSubmit, secrets: &[String]) -> bool {
    if submit.is_secret {
        return true;
    }
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let number_tail = &submit.number[submit.number.len().saturating_sub(NUMBER_TAIL)..];
    // The JSON strings have no escapes.
    let unescaped = strings(json);
    let is_in = |private: &str| {
        !private.is_empty() && (text.contains(private) || unescaped.contains(private))
    };
    let of_text = letters(text);
    let is_quoted = |secret: &str| {
        let letters = letters(secret);
        letters.len() >= EXCERPT_MIN && of_text.contains(&letters)
    };
    let alphanumeric = submit.message.chars().filter(|c| c.is_alphanumeric()).count();
    let is_ascii = letters(&submit.message).len() * 2 >= alphanumeric;
    !is_ascii
        || digits.contains(number_tail)
        || is_in(&submit.message)
        || secrets.iter().any(|secret| is_in(secret) || is_quoted(secret))
        || excerpts(&submit.message).iter().any(|excerpt| of_text.contains(excerpt))
}

/// Returns the beginning of a text without control characters.
fn quoted(text: &str, chars_max: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(chars_max).collect()
}

/// Returns the message's letters and digits, in excerpts of the same length. Any part of the
/// message that is at least twice as long contains a whole excerpt.
fn excerpts(message: &str) -> Vec<String> {
    let letters = letters(message);
    if (EXCERPT_MIN..EXCERPT).contains(&letters.len()) {
        return vec![letters];
    }
    let excerpts = letters.as_bytes().chunks_exact(EXCERPT);
    excerpts.map(|excerpt| String::from_utf8_lossy(excerpt).into_owned()).collect()
}

/// Returns the ASCII letters and digits of a text in lower case. Skips the escapes of URLs, HTML
/// and JSON, so the result is the same for a text and for its escaped form.
fn letters(text: &str) -> String {
    let mut letters = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let escape = escape_len(rest);
        if escape == 0 && first.is_ascii_alphanumeric() {
            letters.push(first.to_ascii_lowercase());
        }
        rest = &rest[escape.max(first.len_utf8())..];
    }
    letters
}

/// Returns the length of the escape with which a text begins: `%2B`, `&amp;`, `\n` or `\u002b`.
/// Returns 0 if it begins with none.
fn escape_len(text: &str) -> usize {
    let is_hex = |from: usize, to: usize| {
        let digits = text.as_bytes().get(from..to);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    match text.as_bytes() {
        [b'%', ..] if is_hex(1, 3) => 3,
        [b'\\', b'u', ..] if is_hex(2, 6) => 6,
        [b'\\', next, ..] if next.is_ascii() => 2,
        [b'&', name @ ..] => {
            let end = name.iter().take(ENTITY_MAX).position(|byte| *byte == b';');
            let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
            end.filter(|end| name[..*end].iter().all(is_name)).map_or(0, |end| end + 2)
        }
        _ => 0,
    }
}

/// Returns all texts of a JSON value.
fn strings(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(strings).collect(),
        Value::Object(fields) => fields.values().map(strings).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}
