//! `tlvs` of an SMPP carrier: optional parameters that its submits have.

use std::borrow::Cow;

use ::smpp::Tlv;

use super::fields::Fields;
use super::template::{Escape, Placeholder, Template};

/// The tags of the parameters that submits have without being asked: the reference, the numbers of
/// the parts, and the text.
const OURS: [u16; 5] = [0x0204, 0x020C, 0x020E, 0x020F, 0x0424];
/// The longest value in octets. It leaves room for the others in a PDU.
const VALUE_MAX: usize = 1024;

/// An optional parameter with its value, which can differ between messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VendorTlv {
    tag: u16,
    value: TlvValue,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TlvValue {
    Text(Template),
    /// A text that ends with a NUL octet.
    CString(Template),
    Octets(Vec<u8>),
}

/// What placeholders in values stand for.
#[derive(Clone, Copy, Debug)]
pub struct TlvFacts<'a> {
    pub transid: &'a str,
    pub number: &'a str,
    pub sender: &'a str,
    /// The application's reference.
    pub application: &'a str,
}

impl VendorTlv {
    /// Returns the parameter for a message.
    pub fn of(&self, facts: TlvFacts<'_>) -> Tlv {
        let filled = |template: &Template| {
            let value = |placeholder| match placeholder {
                Placeholder::Number => Cow::Borrowed(facts.number),
                Placeholder::Sender => Cow::Borrowed(facts.sender),
                Placeholder::Transid => Cow::Borrowed(facts.transid),
                Placeholder::Application => Cow::Borrowed(facts.application),
                // `read` refuses them.
                Placeholder::Message
                | Placeholder::Validity
                | Placeholder::Password
                | Placeholder::Alphabet
                | Placeholder::ReceiptUrl => Cow::Borrowed(""),
            };
            template.fill(value, Escape::Plain).into_bytes()
        };
        let value = match &self.value {
            TlvValue::Text(template) => filled(template),
            TlvValue::CString(template) => [filled(template), vec![0]].concat(),
            TlvValue::Octets(octets) => octets.clone(),
        };
        Tlv { tag: self.tag, value }
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
            _ => {
                let wanted = "a text with no placeholders but {transid}, {number}, {sender} and \
                    {application}";
                let template = fields.parsed("value", None, wanted, template);
                let c_string = kind == Some("c-string");
                template.map(if c_string { TlvValue::CString } else { TlvValue::Text })
            }
        };
        fields.finish();
        Some(Self { tag: tag?, value: kind.and(value)? })
    }
}

fn template(text: &str) -> Option<Template> {
    let template = Template::parse(text).filter(|_| text.len() <= VALUE_MAX)?;
    let refused = [
        Placeholder::Message,
        Placeholder::Validity,
        Placeholder::Password,
        Placeholder::Alphabet,
        Placeholder::ReceiptUrl,
    ];
    let known = !refused.into_iter().any(|placeholder| template.has(placeholder));
    (known && !text.contains('\0')).then_some(template)
}
