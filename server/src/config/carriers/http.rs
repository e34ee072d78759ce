//! `[[carrier]]` of the kind `http`: describes a carrier's API.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method};
use domain::{DeliveryError, MessageStatus};
use regex::{Captures, Regex, RegexBuilder};
use reqwest::Url;
use service::NamedStates;

use super::super::secret::Secret;
use super::fields::Fields;
use super::template::{Escape, Placeholder, Template};
use crate::tls::TlsFiles;

/// The highest `connections`.
const CONNECTIONS_LIMIT: usize = 1_000;
/// The highest `rate`.
const RATE_LIMIT: u32 = 1_000_000;
/// The highest `timeout`, in seconds. The default lease is long enough for three steps together:
/// the wait for the rate limit, a request that takes this long, and storing its answer.
const TIMEOUT_LIMIT_S: u64 = 40;
/// The minimum length of a secret in a public URL.
const SECRET_CHARS_MIN: usize = 16;
/// The maximum size of a compiled pattern in bytes.
const PATTERN_BYTES_MAX: usize = 256 * 1024;
/// What a setting that names a field must be, for errors.
const FIELD: &str = "a field's name";
const TEMPLATE: &str = "a text with {number}, {sender}, {message}, {transid}, {application}, \
    {validity_s}, {alphabet}, {receipt_url} or {password} in it";

/// How to submit a message to a carrier, and what its answers mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpSettings {
    /// Values are percent-encoded.
    pub url: Template,
    pub method: Method,
    pub headers: Vec<(HeaderName, Template)>,
    pub body: Body,
    /// The user of HTTP basic authentication. The password is `password`.
    pub username: Option<String>,
    /// The value of `{password}`.
    pub password: Option<Secret>,
    /// The values of `{alphabet}`.
    pub alphabet: Option<AlphabetCodes>,
    /// The value of `{receipt_url}`.
    pub receipt_url: Option<Secret>,
    /// The maximum number of requests at a time.
    pub connections: usize,
    /// The maximum number of requests per second of all processes; 0 means no limit.
    pub rate: u32,
    /// The maximum number of messages per second of each sender, of all processes; 0 means no
    /// limit.
    pub sender_rate: u32,
    /// The time limit for a request, from the DNS lookup to the last byte of the answer. Connecting
    /// may take at most half of it.
    pub timeout: Duration,
    /// A PEM file with authorities, or with the carrier's own certificate. It replaces the public
    /// authorities.
    pub ca_file: Option<PathBuf>,
    /// The certificate that we present, with its key, if the carrier asks for one.
    pub client: Option<TlsFiles>,
    /// The first rule that matches an answer decides what it means.
    pub answers: Vec<AnswerRule>,
    pub receipt: Option<ReceiptSettings>,
    pub inbound: Option<InboundSettings>,
}

/// The carrier's codes for alphabets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlphabetCodes {
    /// For a message that fits the GSM 7-bit alphabet.
    pub gsm7: String,
    /// For any other message.
    pub unicode: String,
}

/// The body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    None,
    Json(Template),
    /// Values are percent-encoded.
    Form(Template),
}

/// A rule that says what matching answers mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerRule {
    /// The HTTP statuses that match.
    pub http: RangeInclusive<u16>,
    /// A value that the JSON body must contain.
    pub field: Option<Pointer>,
    /// The text that this value must equal.
    pub equals: Option<String>,
    /// The pattern that this value must match. Without a field, the text of the body.
    pub pattern: Option<Pattern>,
    pub outcome: Meaning,
    pub message_id: Option<MessageId>,
    /// Our error codes, by the carrier's code.
    pub errors: Errors,
}

/// Our error codes, by the carrier's code or status.
pub type Errors = BTreeMap<String, DeliveryError>;

/// A regular expression.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

/// Where the message ID comes from that the carrier's receipts contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageId {
    /// The carrier assigns an ID, and this value of its answer contains it.
    Field(Pointer),
    /// The message's `transid`, which the request contained.
    Transid,
}

/// A JSON pointer (RFC 6901). The empty pointer is the whole body, JSON or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer(pub String);

/// The meaning of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Accepted,
    /// The carrier refused the message permanently.
    Refused,
    /// The carrier refused the message, because too many messages came at once.
    Throttled,
    /// The carrier refused the message for now.
    Retry,
    /// The carrier refuses all messages of this account.
    Hold,
}

/// How to read the receipts that a carrier posts to us. A field is the name of a parameter or of
/// a JSON member. If it begins with a slash, it is a JSON pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptSettings {
    /// A part of the URL that the carrier calls.
    pub secret: Secret,
    pub message_id: String,
    pub status: String,
    /// The field with the carrier's code for a failure.
    pub error: Option<String>,
    /// Our error codes, by the carrier's code or, without a match, by its status.
    pub errors: Errors,
    /// The statuses of a delivered message.
    pub delivered: Vec<String>,
    pub failed: Vec<String>,
    pub expired: Vec<String>,
    /// The statuses of a message that is on the way.
    pub enroute: Vec<String>,
}

/// How to read the messages from handsets that a carrier posts to us. Fields are named as in
/// [`ReceiptSettings`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboundSettings {
    /// A part of the URL that the carrier calls.
    pub secret: Secret,
    /// The field with the handset's number.
    pub number: String,
    /// The field with our number.
    pub recipient: String,
    pub message: String,
    /// The field with the carrier's ID of the message.
    pub message_id: Option<String>,
}

impl ReceiptSettings {
    pub(super) fn named_states(&self) -> NamedStates {
        let failed = Some((MessageStatus::Failed, DeliveryError::Undeliverable));
        let expired = Some((MessageStatus::Expired, DeliveryError::ValidityExpired));
        let error = |status: &str, error| Some(*self.errors.get(status).unwrap_or(&error));
        let lists = [(&self.failed, failed), (&self.expired, expired), (&self.enroute, None)];
        let others = lists.into_iter().flat_map(|(list, meaning)| {
            list.iter().map(move |status| {
                (status.clone(), meaning.map(|(is, word)| (is, error(status, word))))
            })
        });
        let delivered = self.delivered.iter();
        let delivered =
            delivered.map(|status| (status.clone(), Some((MessageStatus::Delivered, None))));
        NamedStates { states: others.chain(delivered).collect(), errors: self.errors.clone() }
    }
}

impl HttpSettings {
    /// `own_url` is the URL that the carrier calls, without the secret.
    pub(super) fn read(fields: &mut Fields<'_>, own_url: Option<String>) -> Option<Self> {
        let username = fields.optional("username", "a name without a colon", |text| {
            (!text.is_empty() && !text.contains(':')).then(|| text.to_owned())
        });
        let password = fields.secret("password");
        let alphabet = fields.table("alphabet", alphabet);
        let url = url(fields);
        let body = body(fields);
        let default = if body == Body::None { "GET" } else { "POST" };
        let methods = [("GET", Method::GET), ("POST", Method::POST), ("PUT", Method::PUT)];
        let method = fields.choice("method", Some(default), &methods);
        let headers = headers(fields, password.as_ref());
        let connections = fields.within("connections", "1", &(1..=CONNECTIONS_LIMIT));
        let rate = fields.within("rate", "0", &(0..=RATE_LIMIT));
        let sender_rate = fields.within("sender_rate", "0", &(0..=RATE_LIMIT));
        let timeout = fields.within("timeout", "30", &(1..=TIMEOUT_LIMIT_S));
        let ca_file = fields.authorities("tls_ca");
        let client = fields.identity("tls_cert", "tls_key");
        let answers = fields.tables("answer", answer);
        let receipt = fields.table("receipt", receipt);
        let inbound = fields.table("inbound", inbound);
        let receipt_url = own_url.zip(receipt.as_ref()).map(|(own_url, receipt)| {
            Secret::new(format!("{own_url}/{}", receipt.secret.expose()))
        });
        let settings = Self {
            url: url?,
            method: method?,
            headers,
            body,
            username,
            password,
            alphabet,
            receipt_url,
            connections: connections?,
            rate: rate?,
            sender_rate: sender_rate?,
            timeout: Duration::from_secs(timeout?),
            ca_file,
            client,
            answers,
            receipt,
            inbound,
        };
        settings.contradictions(fields);
        Some(settings)
    }

    /// Returns the URL for a sample message.
    pub fn example_url(&self) -> Option<Url> {
        Url::parse(&self.url.fill(sample, Escape::Percent)).ok()
    }

    /// Reports settings that are valid alone but not together.
    fn contradictions(&self, fields: &mut Fields<'_>) {
        let accepts = |rule: &AnswerRule| rule.outcome == Meaning::Accepted;
        if !self.answers.iter().any(accepts) {
            fields.problem("no answer has the outcome accepted: add [[carrier.answer]]");
        }
        let named = |rule: &AnswerRule| {
            rule.message_id.is_some() || rule.pattern.as_ref().is_some_and(Pattern::has_id)
        };
        if self.receipt.is_some() && !self.answers.iter().any(named) {
            fields.problem(
                "[carrier.receipt] needs an answer with message_id, or with the group id in its \
                 pattern",
            );
        }
        if self.method == Method::GET && self.body != Body::None {
            fields.problem(
                "GET has no body: use the method POST, or put all values into url instead of json \
                 or form",
            );
        }
        let body = match &self.body {
            Body::None => None,
            Body::Json(template) | Body::Form(template) => Some(template),
        };
        let templates: Vec<&Template> =
            (self.headers.iter().map(|(_, value)| value)).chain([&self.url]).chain(body).collect();
        let has = |placeholder| templates.iter().any(|template| template.has(placeholder));
        if self.client.is_some() && self.example_url().is_none_or(|url| url.scheme() != "https") {
            fields.problem("tls_cert is set, so url must begin with https");
        }
        if has(Placeholder::Password) && self.password.is_none() {
            fields.problem("{password} needs password (or password_file), which is missing");
        }
        if self.username.is_some() && self.password.is_none() {
            fields.problem("username needs password (or password_file), which is missing");
        }
        if has(Placeholder::Alphabet) && self.alphabet.is_none() {
            fields.problem("{alphabet} needs alphabet = { gsm7 = \"…\", unicode = \"…\" }");
        }
        if has(Placeholder::ReceiptUrl) && self.receipt_url.is_none() {
            fields.problem("{receipt_url} needs base_url and [carrier.receipt]");
        }
        for (placeholder, name) in
            [(Placeholder::Number, "{number}"), (Placeholder::Message, "{message}")]
        {
            if !has(placeholder) {
                fields.problem(&format!("{name} must be in url or in the body"));
            }
        }
    }
}

impl Pattern {
    /// Returns `None` if the pattern is invalid or too large.
    fn parse(text: &str) -> Option<Self> {
        RegexBuilder::new(text).size_limit(PATTERN_BYTES_MAX).build().ok().map(Self)
    }

    /// Returns whether the pattern captures the message ID.
    fn has_id(&self) -> bool {
        self.0.capture_names().flatten().any(|name| name == "id")
    }

    pub fn captures<'a>(&self, text: &'a str) -> Option<Captures<'a>> {
        self.0.captures(text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for Pattern {}

/// Returns a sample value, to check what a template produces.
fn sample(placeholder: Placeholder) -> Cow<'static, str> {
    Cow::Borrowed(match placeholder {
        Placeholder::Number | Placeholder::Validity | Placeholder::Application => "1",
        Placeholder::Message => "a \"message\"\n",
        Placeholder::Sender
        | Placeholder::Transid
        | Placeholder::Alphabet
        | Placeholder::ReceiptUrl
        | Placeholder::Password => "a",
    })
}

fn url(fields: &mut Fields<'_>) -> Option<Template> {
    let wanted = "a URL like https://sms.example.org/send?to={number}, without user and password";
    fields.hidden("url", wanted, |text| {
        let template = Template::parse(text)?;
        let url = Url::parse(&template.fill(sample, Escape::Percent)).ok()?;
        // A message must not decide which host its request goes to.
        let fixed = Url::parse(text.split('{').next()?).ok()?;
        let plain = url.username().is_empty() && url.password().is_none();
        let web = matches!(url.scheme(), "http" | "https");
        (web && plain && url.has_host() && fixed.origin() == url.origin()).then_some(template)
    })
}

fn body(fields: &mut Fields<'_>) -> Body {
    let json = fields.hidden("json", "JSON with placeholders like {number}", |text| {
        let template = Template::parse(text)?;
        let filled = template.fill(sample, Escape::Json);
        serde_json::from_str::<serde_json::Value>(&filled).ok()?;
        Some(template)
    });
    let form = fields.hidden("form", TEMPLATE, Template::parse);
    match (json, form) {
        (None, None) => Body::None,
        (Some(json), None) => Body::Json(json),
        (None, Some(form)) => Body::Form(form),
        (Some(_), Some(form)) => {
            fields.problem("json and form can't both be set");
            Body::Form(form)
        }
    }
}

fn headers(fields: &mut Fields<'_>, password: Option<&Secret>) -> Vec<(HeaderName, Template)> {
    let password = password.map_or("", Secret::expose);
    let value = |placeholder| match placeholder {
        Placeholder::Password => Cow::Borrowed(password),
        _ => sample(placeholder),
    };
    let mut headers = Vec::new();
    for (name, text) in fields.hidden_map("headers") {
        let header = HeaderName::from_bytes(name.as_bytes()).ok();
        let template = Template::parse(&text).filter(|template| {
            !template.has(Placeholder::Message)
                && HeaderValue::from_str(&template.fill(value, Escape::Plain)).is_ok()
        });
        match header.zip(template) {
            Some(header) => headers.push(header),
            None => fields.problem(&format!(
                "headers.{name} must be a valid header: its value has visible characters, known \
                 placeholders and no {{message}}"
            )),
        }
    }
    headers
}

fn answer(mut fields: Fields<'_>) -> Option<AnswerRule> {
    let http = fields.parsed("http", None, "a status like 200, or 2xx", statuses);
    let field = fields.optional("field", "a JSON pointer like /status", pointer);
    let equals = fields.optional("equals", "a plain value", |text| Some(text.to_owned()));
    let wanted = "a regular expression like ^OK:(?<id>[0-9]+), and not too large";
    let pattern = fields.optional("pattern", wanted, Pattern::parse);
    let outcomes = [
        ("accepted", Meaning::Accepted),
        ("refused", Meaning::Refused),
        ("throttled", Meaning::Throttled),
        ("retry", Meaning::Retry),
        ("hold", Meaning::Hold),
    ];
    let outcome = fields.choice("outcome", None, &outcomes);
    let wanted = "a JSON pointer like /id, or {transid}";
    let message_id = fields.optional("message_id", wanted, message_id);
    let errors = errors(&mut fields);
    if equals.is_some() && field.is_none() {
        fields.problem("equals needs a field");
    }
    if equals.is_some() && pattern.is_some() {
        fields.problem("pattern and equals can't both be set");
    }
    let captures_id = pattern.as_ref().is_some_and(Pattern::has_id);
    if message_id.is_some() && captures_id {
        fields.problem("message_id and the group id of pattern can't both be set");
    }
    if (message_id.is_some() || captures_id)
        && outcome.is_some_and(|outcome| outcome != Meaning::Accepted)
    {
        fields.problem("message_id and the group id of pattern need the outcome accepted");
    }
    if !errors.is_empty() && matches!(outcome, Some(Meaning::Accepted | Meaning::Throttled)) {
        fields.problem("errors needs the outcome refused, retry or hold");
    }
    fields.finish();
    Some(AnswerRule { http: http?, field, equals, pattern, outcome: outcome?, message_id, errors })
}

fn message_id(text: &str) -> Option<MessageId> {
    if text == "{transid}" { Some(MessageId::Transid) } else { pointer(text).map(MessageId::Field) }
}

/// Reads the table of our error codes.
fn errors(fields: &mut Fields<'_>) -> Errors {
    let mut errors = Errors::new();
    for (code, text) in fields.map("errors") {
        let known = DeliveryError::ALL.into_iter().find(|error| error.as_str() == text);
        if let Some(error) = known {
            errors.insert(code, error);
        } else {
            let words = DeliveryError::ALL.map(DeliveryError::as_str).join(", ");
            fields.problem(&format!("errors.{code} must be one of {words}"));
        }
    }
    errors
}

fn alphabet(mut fields: Fields<'_>) -> Option<AlphabetCodes> {
    let [gsm7, unicode] = ["gsm7", "unicode"].map(|name| {
        fields.parsed(name, None, "the carrier's code for it", |text| Some(text.to_owned()))
    });
    fields.finish();
    Some(AlphabetCodes { gsm7: gsm7?, unicode: unicode? })
}

fn statuses(text: &str) -> Option<RangeInclusive<u16>> {
    if let Some(class) = text.strip_suffix("xx") {
        let class: u16 = class.parse().ok().filter(|class| (2..=5).contains(class))?;
        return Some(class * 100..=class * 100 + 99);
    }
    let status = text.parse().ok().filter(|status| (200..=599).contains(status))?;
    Some(status..=status)
}

fn pointer(text: &str) -> Option<Pointer> {
    (text.is_empty() || text.starts_with('/')).then(|| Pointer(text.to_owned()))
}

fn receipt(mut fields: Fields<'_>) -> Option<ReceiptSettings> {
    let message_id = fields.parsed("message_id", None, FIELD, name);
    let status = fields.parsed("status", None, FIELD, name);
    let error = fields.optional("error", FIELD, name);
    let errors = errors(&mut fields);
    let [delivered, failed, expired, enroute] =
        ["delivered", "failed", "expired", "enroute"].map(|name| fields.list(name));
    let secret = secret_of_url(&mut fields);
    if delivered.is_empty() {
        fields.problem("delivered is missing; it must list the statuses that mean delivered");
    }
    let lists = [&delivered, &failed, &expired, &enroute];
    let mut words: Vec<&String> = lists.into_iter().flatten().collect();
    words.sort_unstable();
    if words.windows(2).any(|pair| pair[0] == pair[1]) {
        fields.problem("a status is listed twice in delivered, failed, expired and enroute");
    }
    fields.finish();
    Some(ReceiptSettings {
        secret: secret?,
        message_id: message_id?,
        status: status?,
        error,
        errors,
        delivered,
        failed,
        expired,
        enroute,
    })
}

fn inbound(mut fields: Fields<'_>) -> Option<InboundSettings> {
    let number = fields.parsed("number", None, FIELD, name);
    let recipient = fields.parsed("recipient", None, FIELD, name);
    let message = fields.parsed("message", None, FIELD, name);
    let message_id = fields.optional("message_id", FIELD, name);
    let secret = secret_of_url(&mut fields);
    fields.finish();
    Some(InboundSettings {
        secret: secret?,
        number: number?,
        recipient: recipient?,
        message: message?,
        message_id,
    })
}

fn name(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn secret_of_url(fields: &mut Fields<'_>) -> Option<Secret> {
    let secret = fields.required_secret("secret");
    if secret.as_ref().is_some_and(|secret| !fits_url(secret.expose())) {
        fields.problem(&format!(
            "secret must have at least {SECRET_CHARS_MIN} characters, only letters, digits, - and \
             _: it is part of a URL"
        ));
    }
    secret
}

fn fits_url(secret: &str) -> bool {
    secret.len() >= SECRET_CHARS_MIN
        && (secret.bytes()).all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}
