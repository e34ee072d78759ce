//! `[[carrier]]` of the kind `http`: describes an upstream's API.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method};
use reqwest::Url;

use super::super::secret::Secret;
use super::fields::Fields;
use super::template::{Escape, Placeholder, Template};

/// The highest `connections`.
const CONNECTIONS_LIMIT: usize = 1_000;
/// The highest `rate`.
const RATE_LIMIT: u32 = 1_000_000;
/// The highest `timeout`, in seconds. The default lease is long enough for three steps together:
/// the wait for the rate limit, a request that takes this long, and storing its answer.
const TIMEOUT_LIMIT_S: u64 = 40;
/// The minimum length of a secret in a public URL.
const SECRET_CHARS_MIN: usize = 16;
/// What a field's setting must be.
const FIELD: &str = "a field's name";
const TEMPLATE: &str =
    "a text with {number}, {sender}, {message}, {transid}, {validity_s} or {password} in it";

/// How to submit a message to an upstream, and what its answers mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpSettings {
    /// Values are percent-encoded.
    pub url: Template,
    pub method: Method,
    pub headers: Vec<(HeaderName, Template)>,
    pub body: Body,
    /// The value of `{password}`.
    pub password: Option<Secret>,
    /// The maximum number of requests at a time.
    pub connections: usize,
    /// The maximum number of requests per second; 0 means no limit.
    pub rate: u32,
    /// The time limit for a request, from the DNS lookup to the last byte of the answer. Connecting
    /// may take at most half of it.
    pub timeout: Duration,
    /// A PEM file of authorities, instead of the public ones.
    pub ca_file: Option<PathBuf>,
    /// The first rule that matches an answer decides what it means.
    pub answers: Vec<AnswerRule>,
    pub receipt: Option<ReceiptSettings>,
    pub inbound: Option<InboundSettings>,
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
    pub outcome: Meaning,
    /// Where the answer contains the upstream's ID for the message.
    pub message_id: Option<Pointer>,
}

/// A JSON pointer (RFC 6901). The empty pointer is the whole body, JSON or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer(pub String);

/// The meaning of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Accepted,
    /// The upstream refused the message permanently.
    Refused,
    /// The upstream refused the message, because too many messages came at once.
    Throttled,
    /// The upstream refused the message for now.
    Retry,
}

/// How to read the receipts that an upstream posts to us. A field is the name of a parameter or of
/// a JSON member. If it begins with a slash, it is a JSON pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptSettings {
    /// A part of the URL that the upstream calls.
    pub secret: Secret,
    pub message_id: String,
    pub status: String,
    /// The field with the reason of a failure.
    pub error: Option<String>,
    /// The statuses of a delivered message. A status that isn't in any of the three lists means
    /// that the message is on the way.
    pub delivered: Vec<String>,
    pub failed: Vec<String>,
    pub expired: Vec<String>,
}

/// How to read the messages from handsets that an upstream posts to us. Fields are named as in
/// [`ReceiptSettings`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboundSettings {
    /// A part of the URL that the upstream calls.
    pub secret: Secret,
    /// The field with the handset's number.
    pub number: String,
    /// The field with our number.
    pub recipient: String,
    pub message: String,
    /// The field with the upstream's ID of the message.
    pub message_id: Option<String>,
}

impl HttpSettings {
    pub(super) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let password = fields.secret("password");
        let url = url(fields);
        let body = body(fields);
        let default = if body == Body::None { "GET" } else { "POST" };
        let methods = [("GET", Method::GET), ("POST", Method::POST), ("PUT", Method::PUT)];
        let method = fields.choice("method", Some(default), &methods);
        let headers = headers(fields, password.as_ref());
        let connections = fields.within("connections", "1", &(1..=CONNECTIONS_LIMIT));
        let rate = fields.within("rate", "0", &(0..=RATE_LIMIT));
        let timeout = fields.within("timeout", "30", &(1..=TIMEOUT_LIMIT_S));
        let ca_file = fields.authorities("tls_ca");
        let answers = fields.tables("answer", answer);
        let receipt = fields.table("receipt", receipt);
        let inbound = fields.table("inbound", inbound);
        let settings = Self {
            url: url?,
            method: method?,
            headers,
            body,
            password,
            connections: connections?,
            rate: rate?,
            timeout: Duration::from_secs(timeout?),
            ca_file,
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
        let named = |rule: &AnswerRule| rule.message_id.is_some();
        if self.receipt.is_some() && !self.answers.iter().any(named) {
            fields.problem("receipts need the message_id of an answer, and no answer has one");
        }
        if self.method == Method::GET && self.body != Body::None {
            fields.problem("GET has no body: use the method POST, or only url");
        }
        let body = match &self.body {
            Body::None => None,
            Body::Json(template) | Body::Form(template) => Some(template),
        };
        let templates: Vec<&Template> =
            (self.headers.iter().map(|(_, value)| value)).chain([&self.url]).chain(body).collect();
        let has = |placeholder| templates.iter().any(|template| template.has(placeholder));
        if has(Placeholder::Password) && self.password.is_none() {
            fields.problem("{password} needs password (or password_file), which is missing");
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

/// Returns a sample value, to check what a template produces.
fn sample(placeholder: Placeholder) -> Cow<'static, str> {
    Cow::Borrowed(match placeholder {
        Placeholder::Number | Placeholder::Validity => "1",
        Placeholder::Message => "a \"message\"\n",
        Placeholder::Sender | Placeholder::Transid | Placeholder::Password => "a",
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
            fields.problem("json and form can't both be the body");
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
    for (name, text) in fields.map("headers") {
        let header = HeaderName::from_bytes(name.as_bytes()).ok();
        let template = Template::parse(&text).filter(|template| {
            !template.has(Placeholder::Message)
                && HeaderValue::from_str(&template.fill(value, Escape::Plain)).is_ok()
        });
        match header.zip(template) {
            Some(header) => headers.push(header),
            None => fields.problem(&format!(
                "headers.{name} must be a header with a value of visible characters, not \
                 {{message}}"
            )),
        }
    }
    headers
}

fn answer(mut fields: Fields<'_>) -> Option<AnswerRule> {
    let http = fields.parsed("http", None, "a status like 200, or 2xx", statuses);
    let field = fields.optional("field", "a JSON pointer like /status", pointer);
    let equals = fields.optional("equals", "a plain value", |text| Some(text.to_owned()));
    let outcomes = [
        ("accepted", Meaning::Accepted),
        ("refused", Meaning::Refused),
        ("throttled", Meaning::Throttled),
        ("retry", Meaning::Retry),
    ];
    let outcome = fields.choice("outcome", None, &outcomes);
    let message_id = fields.optional("message_id", "a JSON pointer like /id", pointer);
    if equals.is_some() && field.is_none() {
        fields.problem("equals needs a field");
    }
    if message_id.is_some() && outcome.is_some_and(|outcome| outcome != Meaning::Accepted) {
        fields.problem("message_id is for the outcome accepted");
    }
    fields.finish();
    Some(AnswerRule { http: http?, field, equals, outcome: outcome?, message_id })
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
    let [delivered, failed, expired] =
        ["delivered", "failed", "expired"].map(|name| fields.list(name));
    let secret = secret_of_url(&mut fields);
    if delivered.is_empty() {
        fields.problem("delivered is missing; it must list the statuses that mean delivered");
    }
    let mut words: Vec<&String> = [&delivered, &failed, &expired].into_iter().flatten().collect();
    words.sort_unstable();
    if words.windows(2).any(|pair| pair[0] == pair[1]) {
        fields.problem("a status is listed twice in delivered, failed and expired");
    }
    fields.finish();
    Some(ReceiptSettings {
        secret: secret?,
        message_id: message_id?,
        status: status?,
        error,
        delivered,
        failed,
        expired,
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
            "secret must have at least {SECRET_CHARS_MIN} letters, digits, - and _: it is part of \
             a URL"
        ));
    }
    secret
}

fn fits_url(secret: &str) -> bool {
    secret.len() >= SECRET_CHARS_MIN
        && (secret.bytes()).all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}
