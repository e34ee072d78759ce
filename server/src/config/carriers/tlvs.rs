//! `tlvs` of an SMPP carrier: additional optional parameters of its submits.

use std::borrow::Cow;
use std::collections::BTreeMap;

use ::smpp::Tlv;

use super::fields::Fields;
use super::template::{Escape, Placeholder, Template};

/// The tags of the parameters that the server sets itself: user_message_reference, the sar_
/// parameters and message_payload.
const OURS: [u16; 5] = [0x0204, 0x020C, 0x020E, 0x020F, 0x0424];
/// The maximum length of a value in octets. It leaves room for the other parameters in a PDU.
const VALUE_MAX: usize = 1024;
const TEXT: &str = "a text of at most 1024 octets with no placeholders but {transid}, {number}, \
    {sender} and {application}";

/// An optional parameter with its value, which can differ between messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VendorTlv {
    tag: u16,
    value: TlvValue,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TlvValue {
    Text(Text),
    Octets(Vec<u8>),
    /// The texts by sender, in lower case. Messages of other senders don't have the parameter.
    BySender(BTreeMap<String, Text>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Text {
    template: Template,
    /// Whether a NUL octet ends the text.
    is_c_string: bool,
}

/// The values of the placeholders.
#[derive(Clone, Copy, Debug)]
pub struct TlvFacts<'a> {
    pub transid: &'a str,
    pub number: &'a str,
    pub sender: &'a str,
    /// The application's reference.
    pub application: &'a str,
}

impl VendorTlv {
    /// Returns the parameter for a message, if it has one.
    pub fn of(&self, facts: TlvFacts<'_>) -> Option<Tlv> {
        let value = match &self.value {
            TlvValue::Text(text) => text.fill(facts),
            TlvValue::Octets(octets) => octets.clone(),
            TlvValue::BySender(texts) => texts.get(&facts.sender.to_ascii_lowercase())?.fill(facts),
        };
        Some(Tlv { tag: self.tag, value })
    }

    pub(super) fn read_all(fields: &mut Fields<'_>) -> Vec<Self> {
        fields.tables("tlvs", Self::read)
    }

    fn read(mut fields: Fields<'_>) -> Option<Self> {
        let wanted = "a number from 0x0001 to 0xffff that the server doesn't use itself";
        let tag = fields.parsed("tag", None, wanted, |text| {
            text.parse().ok().filter(|tag| *tag > 0 && !OURS.contains(tag))
        });
        let kinds = ["string", "c-string", "integer", "hex"].map(|kind| (kind, kind));
        let kind = fields.choice("type", None, &kinds);
        let value = match kind {
            Some("integer") => fields.parsed("value", None, "a number below 2^32", |text| {
                text.parse().ok().map(|number: u32| TlvValue::Octets(number.to_be_bytes().into()))
            }),
            Some("hex") => fields.parsed("value", None, "pairs of hexadecimal digits", |text| {
                hex::decode(text)
                    .ok()
                    .filter(|value| value.len() <= VALUE_MAX)
                    .map(TlvValue::Octets)
            }),
            Some(kind) if fields.is_table("value") => by_sender(&mut fields, kind == "c-string"),
            _ => {
                let wanted = format!("{TEXT}, or a table of texts by sender");
                let is_c_string = kind == Some("c-string");
                let parse = |text: &str| Text::parse(text, is_c_string).map(TlvValue::Text);
                fields.parsed("value", None, &wanted, parse)
            }
        };
        fields.finish();
        Some(Self { tag: tag?, value: kind.and(value)? })
    }
}

impl Text {
    fn parse(text: &str, is_c_string: bool) -> Option<Self> {
        let template = Template::parse(text).filter(|_| text.len() <= VALUE_MAX)?;
        let refused = [
            Placeholder::Message,
            Placeholder::Validity,
            Placeholder::Password,
            Placeholder::Alphabet,
            Placeholder::ReceiptUrl,
        ];
        let known = !refused.into_iter().any(|placeholder| template.has(placeholder));
        (known && !text.contains('\0')).then_some(Self { template, is_c_string })
    }

    fn fill(&self, facts: TlvFacts<'_>) -> Vec<u8> {
        let value = |placeholder| match placeholder {
            Placeholder::Number => Cow::Borrowed(facts.number),
            Placeholder::Sender => Cow::Borrowed(facts.sender),
            Placeholder::Transid => Cow::Borrowed(facts.transid),
            Placeholder::Application => Cow::Borrowed(facts.application),
            // `parse` refuses them.
            Placeholder::Message
            | Placeholder::Validity
            | Placeholder::Password
            | Placeholder::Alphabet
            | Placeholder::ReceiptUrl => Cow::Borrowed(""),
        };
        let mut octets = self.template.fill(value, Escape::Plain).into_bytes();
        if self.is_c_string {
            octets.push(0);
        }
        octets
    }
}

fn by_sender(fields: &mut Fields<'_>, is_c_string: bool) -> Option<TlvValue> {
    let mut texts = BTreeMap::new();
    for (sender, text) in fields.map("value") {
        let Some(text) = Text::parse(&text, is_c_string) else {
            fields.problem(&format!("value.{sender} must be {TEXT}"));
            return None;
        };
        if texts.insert(sender.to_ascii_lowercase(), text).is_some() {
            fields.problem(&format!("value has {sender} twice: upper and lower case don't differ"));
            return None;
        }
    }
    Some(TlvValue::BySender(texts))
}
