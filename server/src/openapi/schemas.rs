//! The named schemas that parameters and responses share.

use domain::MessageStatus;
use domain::records::SYSTEM_KIND;
use domain::verify::Locale;
use serde_json::json;
use service::IDEMPOTENCY_KEY_CHARS_MAX;
use utoipa::openapi::schema::{Object, ObjectBuilder, Schema, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

use crate::json::{Amount, DateTime};

/// The characters of a transid or batchid after its prefix: base 32 without i, l, o and u. An ID
/// has 63 bits, so the first character holds only three.
const ID_CHARS: &str = "[0-7][0-9a-hjkmnp-tv-z]{12}";

/// Defines types that are only schemas: for parameters that are parsed by hand, and for texts with
/// a fixed format.
macro_rules! schemas {
    ($($(#[$about:meta])* $name:ident = $schema:expr;)*) => {
        $(
            $(#[$about])*
            pub enum $name {}

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    $schema.into()
                }
            }

            impl ToSchema for $name {}
        )*
    };
}

schemas! {
    ApiKey = text("6 digits (the reference for deposits), hk_ (live) or ht_ (test), 30 random \
        characters and a checksum of 6.")
        .pattern(Some("^[0-9]{6}h[kt]_[0-9A-Za-z]{36}$"))
        .build();
    Number = text("4 to 15 digits: exactly 8 for a local number, with country code for an \
        international one. A leading + marks an international number. In a query or a URL-encoded \
        form, write it as %2B; a leading space there is read as +. Anywhere else, a number with a \
        space is refused.")
        .pattern(Some("^[+ ]?[0-9]{4,15}$"))
        .examples([json!("57000001")])
        .build();
    /// The maximum length depends on the settings, so [`super::document`] adds it.
    Message = text("Text without NUL. 160 characters are a page, the unit of the price. If the \
        owner of the application wants it, common characters outside GSM-7 are replaced.")
        .min_length(Some(1))
        .pattern(Some("^[^\\u0000]*$"))
        .examples([json!("Your code is 4711")])
        .build();
    RequestId = text("Chosen by the caller, for lookups only: two sends with the same requestid \
        are two messages.")
        .min_length(Some(1))
        .max_length(Some(domain::ids::REQUESTID_CHARS_MAX))
        .pattern(Some("^[^\\u0000]*$"))
        .examples([json!("login-81")])
        .build();
    /// Strings only: client generators can't use a choice between strings and booleans.
    DryRun = text("With 1 or true, the request is checked, but nothing is stored, charged or sent. \
        A dry run neither reads nor keeps an idempotency key. In JSON, the booleans true and false \
        are accepted too.")
        .enum_values(Some(["1", "true", "0", "false"]))
        .default(Some(json!("0")))
        .build();
    IdempotencyKey = text("Makes a request safe to repeat: for 24 hours after a 200, the same \
        request with the same key gets the same response, and nothing is sent or charged again. \
        Refusals aren't kept.")
        .min_length(Some(1))
        .max_length(Some(IDEMPOTENCY_KEY_CHARS_MAX))
        .pattern(Some("^[!-~]([ -~]*[!-~])?$"))
        .examples([json!("order-4711")])
        .build();
    Transid = id("m_", "A message's ID.");
    BatchId = id("b_", "A batch's ID.");
    InboundId = id("i_", "The ID of a message from a handset.");
    WebhookId = id("w_", "An endpoint's ID.");
    VerifyId = id("v_", "A verification's ID.");
    CodeLocale = text(&format!("The language of the text: {}, with or without a region. Without it, \
        the application's.", Locale::ALL.map(Locale::as_str).join(", ")))
        .pattern(Some(locale_pattern()))
        .examples([json!("pt-BR")])
        .build();
    CodeLength = text("The number of digits, from 4 to 10. Without it, 6.")
        .pattern(Some("^0*([4-9]|10)$"))
        .examples([json!("6")])
        .build();
    CodeTtl = text("How many seconds the code is valid, from 60 to 3600. Without it, 600.")
        .pattern(Some("^[0-9]+$"))
        .examples([json!("600")])
        .build();
    CodeName = text("The name in the text: 1 to 11 ASCII letters and digits. Without it, the \
        sender name.")
        .pattern(Some("^[0-9A-Za-z]{1,11}$"))
        .examples([json!("Shop")])
        .build();
    Otp = text("The code as the person typed it.").examples([json!("123456")]).build();
    CheckFailure = choice(
        &domain::verify::CheckFailure::ALL.map(domain::verify::CheckFailure::as_str),
        "Why the number isn't verified.",
    );
    EventId = text("An event's ID.")
        .pattern(Some(format!("^e_{ID_CHARS}[0-9]{{6}}[lt]$")))
        .examples([json!("e_0000000000000482913l")])
        .build();
    EventType = choice(&domain::EventType::ALL.map(domain::EventType::as_str), "What happened.");
    EventTypes = text("Types of events, comma-separated. Without it, all types; an endpoint then \
        gets all types except message.submitted.")
        .pattern(Some("^[a-z_.]+( ?, ?[a-z_.]+)*$"))
        .examples([json!("message.delivered,message.failed")])
        .build();
    WebhookUrl = text("An https address that this service can reach, without user name and \
        password.")
        .max_length(Some(service::URL_CHARS_MAX))
        .examples([json!("https://example.com/sms-events")])
        .build();
    WebhookSecret = text("whsec_ and 24 bytes in base64.")
        .pattern(Some("^whsec_[0-9A-Za-z+/]{32}$"))
        .build();
    WebhookStatus = choice(&["active", "disabled"], "A disabled endpoint gets no events.");
    DisabledReason = choice(
        &domain::webhook::DisabledReason::ALL.map(domain::webhook::DisabledReason::as_str),
        "gone: it answered 410. failing: all attempts of three days failed.",
    );
    /// A choice with one value.
    OnlyOne = choice(&["1", "true"], "Only 1 or true. Leave the parameter out otherwise.");
    Reference = text("The first six digits of the application's keys.")
        .pattern(Some("^[0-9]{6}$"))
        .build();
    Since = text("A time in RFC 3339, or a date, which begins at midnight UTC.")
        .pattern(Some("^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])\
            ([Tt ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]+)?\
            ([Zz]|[+ -]([01][0-9]|2[0-3]):[0-5][0-9]))?$"))
        .examples([json!("2026-11-21T08:30:00Z"), json!("2026-11-21")])
        .build();
    Limit = integer()
        .minimum(Some(1))
        .maximum(Some(1000))
        .default(Some(json!(100)))
        .description(Some("The maximum number of entries."))
        .build();
    Format = choice(
        &["json", "csv"],
        "The format of the response. In CSV, a cell that spreadsheets would run as a formula has an \
         apostrophe (') before it.",
    );
    Kind = choice(
        &[domain::Kind::Local, domain::Kind::International].map(domain::Kind::as_str),
        "Whether a number is local or international.",
    );
    MessageKind = choice(
        &[domain::Kind::Local.as_str(), domain::Kind::International.as_str(), SYSTEM_KIND],
        "Whether the number is local or international. system: a free reply to a command about \
         opt-outs.",
    );
    Status = choice(&MessageStatus::ALL.map(MessageStatus::as_str), "The status of a message.");
    BatchStatus = choice(
        &domain::records::BatchStatus::ALL.map(domain::records::BatchStatus::as_str),
        "scheduled: its time hasn't come. expanding: rows are still becoming messages. sending: \
         all rows are messages. paused: no more rows are submitted. cancelled: only rows that a \
         carrier has or may have can still be delivered. done: all messages are final.",
    );
    SendAt = text("When to send, in RFC 3339 with an offset: at most 35 days ahead. Up to 5 \
        minutes in the past means at once.")
        .pattern(Some("^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])\
            [Tt ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]+)?\
            ([Zz]|[+ -]([01][0-9]|2[0-3]):[0-5][0-9])$"))
        .examples([json!("2026-11-21T08:30:00+02:00")])
        .build();
    Validity = text("For how many minutes, from sendat or from now, the message may wait for a \
        carrier: 1 to 2880, which is the default.")
        .pattern(Some("^[0-9]{1,4}$"))
        .examples([json!("60")])
        .build();
    Counts = counts();
    Reason = choice(
        &domain::Reason::ALL.map(domain::Reason::as_str),
        "A stable code that programs may match on.",
    );
    /// The reason of a bad row.
    RowReason = choice(&ROW_REASONS.map(domain::Reason::as_str), "What is wrong with the row.");
    CodeSuccess = integer().enum_values(Some([200])).build();
    WordsSuccess = choice(&["SUCCESS"], "message and text are the same.");
    /// A code that isn't 200.
    CodeFailure = integer().enum_values(Some([500, 501, 502, 503, 504, 505])).build();
    Positive = integer().minimum(Some(1)).build();
    /// Not an enum with one value: client generators can't use an enum of a boolean.
    OnlyTrue = ObjectBuilder::new()
        .schema_type(Type::Boolean)
        .description(Some("true, and only on a dry run."))
        .build();
    DeliveryError = delivery_error();
    Warning = choice(
        &domain::NumberWarning::ALL.map(domain::NumberWarning::as_str),
        "An international number that is probably a mistake. looks_local: the home country's code \
         before 8 digits, which would cost less without the code. leading_zero: it begins with 0, \
         and no country code does. near_local: it has 7 or 9 digits, and a local number has 8.",
    );
    BulkWarning = choice(
        &[
            domain::NumberWarning::LooksLocal.as_str(),
            domain::NumberWarning::LeadingZero.as_str(),
            domain::NumberWarning::NearLocal.as_str(),
            domain::Reason::OptedOut.as_str(),
            domain::Reason::InternationalDisabled.as_str(),
            domain::Reason::DoubtfulNumber.as_str(),
        ],
        "As for a single message. opted_out: the recipient has opted out. international_disabled, \
         doubtful_number: the application's limits refuse the number. The messages of these three \
         are rejected and cost nothing.",
    );
    OptOutCursor = id("o_", "The value of next in the previous response.");
    OptOutSource = choice(
        &domain::OptOutSource::ALL.map(domain::OptOutSource::as_str),
        "Who added it. reply: the handset, with a message. api: a program. portal: the owner, on \
         the application's page.",
    );
    LimitMode = choice(
        &domain::Guard::ALL.map(domain::Guard::as_str),
        "alarm: the owner gets a mail. block: the request is refused too.",
    );
    International = choice(&["allowed", "off"], "Whether international numbers may be used.");
    Currency = text("ISO 4217 code.").pattern(Some("^[A-Z]{3}$")).build();
    PrefixDigits = text("The digits that international numbers begin with.")
        .pattern(Some("^[0-9]{1,15}$"))
        .build();
    Digits = text("The number's digits, without +.").pattern(Some("^[0-9]{4,15}$")).build();
    Recipient = text("The number's digits, without +. • stands for a digit that was erased.").build();
    Table = text("A header line with the names of the fields, then a line for each entry (RFC \
        4180). Absent values are empty.").build();
}

/// The reasons of bad rows.
const ROW_REASONS: [domain::Reason; 5] = [
    domain::Reason::InvalidNumber,
    domain::Reason::InvalidMessage,
    domain::Reason::MessageTooLong,
    domain::Reason::InvalidEncoding,
    domain::Reason::InvalidFile,
];

fn integer() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer)
}

/// Returns a pattern for the languages of codes, which may be in upper or lower case.
fn locale_pattern() -> String {
    let either = |letter: char| format!("[{letter}{}]", letter.to_ascii_uppercase());
    let codes = Locale::ALL.map(|locale| locale.as_str().chars().map(either).collect::<String>());
    format!("^({})([-_].*)?$", codes.join("|"))
}

fn text(description: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).description(Some(description))
}

fn choice(words: &[&str], description: &str) -> Object {
    text(description).enum_values(Some(words.to_vec())).build()
}

fn id(prefix: &str, description: &str) -> Object {
    text(description)
        .pattern(Some(format!("^{prefix}{ID_CHARS}$")))
        .examples([json!(format!("{prefix}0000000000000"))])
        .build()
}

fn counts() -> Object {
    let count = || integer().minimum(Some(0)).build();
    let object = ObjectBuilder::new().description(Some("Messages by status; they add up to rows."));
    MessageStatus::ALL
        .into_iter()
        .fold(object, |object, status| {
            let name = status.as_str();
            object.property(name, count()).required(name)
        })
        .build()
}

/// Returns the schema of delivery errors. It isn't an enum, because a carrier's own code may
/// follow.
fn delivery_error() -> Object {
    let words = domain::DeliveryError::ALL.map(domain::DeliveryError::as_str);
    let description = format!(
        "A stable code for why the message wasn't delivered: {}. An underscore and the \
         network's or the carrier's own code may follow.",
        words.join(", ")
    );
    text(&description).examples(words.map(|word| json!(word))).build()
}

impl PartialSchema for Amount {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Number)
            .description(Some(
                "A plain decimal with at most 6 decimals, exact: read it as a decimal, not as a \
                 float.",
            ))
            .examples([json!(9.95)])
            .into()
    }
}

impl ToSchema for Amount {
    fn name() -> std::borrow::Cow<'static, str> {
        "Money".into()
    }
}

impl PartialSchema for DateTime {
    fn schema() -> RefOr<Schema> {
        text("A time in RFC 3339, UTC.")
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .examples([json!("2026-11-21T08:30:00.000Z")])
            .into()
    }
}

impl ToSchema for DateTime {
    fn name() -> std::borrow::Cow<'static, str> {
        "DateTime".into()
    }
}
