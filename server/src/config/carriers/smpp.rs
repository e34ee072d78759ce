//! `[[carrier]]` of the kind `smpp`.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use domain::{
    DefaultAlphabet, DeliveryError, MessageIdForm, MessageStatus, Segmentation, SubmitAlphabet,
};
use service::NamedStates;

use super::super::secret::Secret;
use super::address::Address;
use super::fields::Fields;
use super::submit_status::SubmitStatus;
use super::tlvs::VendorTlv;
use crate::tls::TlsFiles;

/// The maximum number of connections from one process to one carrier.
const CONNECTIONS_LIMIT: usize = 64;
/// The highest `window`.
const WINDOW_LIMIT: usize = 10_000;
/// The highest `rate`.
const RATE_LIMIT: u32 = 1_000_000;
/// The maximum lengths in SMPP 3.4, in ASCII characters (5.2.1 to 5.2.3).
const SYSTEM_ID_MAX: usize = 15;
/// SMPP allows 8 characters. Some carriers have longer passwords.
const PASSWORD_MAX: usize = 255;
const SYSTEM_TYPE_MAX: usize = 12;
/// SMPP 3.4, 5.2.11 and 5.2.7.
const SERVICE_TYPE_MAX: usize = 5;
const ADDRESS_RANGE_MAX: usize = 40;
/// The limits of `answer_timeout` and `enquire_link`, in seconds.
const ANSWER_TIMEOUT_LIMITS_S: RangeInclusive<u64> = 1..=300;
const ENQUIRE_LINK_LIMITS_S: RangeInclusive<u64> = 1..=3600;
/// A sender with at most this many digits is a short code.
const SHORT_CODE_DIGITS_MAX: usize = 6;

/// How to bind to a carrier, and how to write its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmppSettings {
    pub address: Address,
    /// Where to bind if a bind at `address` fails.
    pub backup_address: Option<Address>,
    pub tls: Option<ClientTls>,
    pub system_id: String,
    pub password: Secret,
    /// Usually empty.
    pub system_type: String,
    /// The numbers that the carrier serves on this bind. Usually empty.
    pub address_range: String,
    pub bind: BindMode,
    /// The number of binds per worker process.
    pub connections: usize,
    /// The maximum number of unanswered submits per connection.
    pub window: usize,
    /// The maximum number of submits per second and connection; 0 means no limit.
    pub rate: u32,
    /// The maximum number of submits per second over all connections of all processes; 0 means no
    /// limit.
    pub carrier_rate: u32,
    /// The maximum number of submits per second of each sender, over all connections of all
    /// processes; 0 means no limit.
    pub sender_rate: u32,
    /// How long an answer may take. The lease of a message can shorten it.
    pub answer_timeout: Duration,
    /// After this much silence, an enquire_link checks whether the carrier is still there.
    pub enquire_link: Duration,
    /// Usually empty.
    pub service_type: String,
    /// How texts in the GSM 7-bit alphabet are written.
    pub alphabet: SubmitAlphabet,
    /// The `data_coding` of these texts. Other texts are UCS-2, with `data_coding` 8.
    pub data_coding: u8,
    pub tlvs: Vec<VendorTlv>,
    pub submit_status: SubmitStatus,
    pub message_id: MessageIdForm,
    pub segmentation: Segmentation,
    /// The alphabet of inbound messages with the data_coding 0.
    pub default_alphabet: DefaultAlphabet,
    /// Whether submits contain how long the carrier may try to deliver the message.
    pub validity_period: bool,
    /// The meanings of states in receipts, by `stat` as the carrier writes it. Other states have
    /// their common meaning.
    pub states: BTreeMap<String, ReceiptState>,
    /// The meanings of error numbers in receipts, by `err` as the carrier writes it.
    pub errors: BTreeMap<String, DeliveryError>,
    source: Option<AddressType>,
    pub destination: AddressType,
}

/// Which certificates to trust, and which one to present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTls {
    /// A PEM file of certificates to trust instead of the public authorities: authorities, or the
    /// carrier's own certificate.
    pub ca_file: Option<PathBuf>,
    /// The certificate that we present.
    pub client: Option<TlsFiles>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindMode {
    Transceiver,
    TransmitterAndReceiver,
    /// Receives nothing: neither receipts nor messages.
    Transmitter,
    /// Submits nothing. No route may lead to the carrier.
    Receiver,
}

const BIND_MODES: [(&str, BindMode); 4] = [
    ("transceiver", BindMode::Transceiver),
    ("transmitter+receiver", BindMode::TransmitterAndReceiver),
    ("transmitter", BindMode::Transmitter),
    ("receiver", BindMode::Receiver),
];

/// The meaning of a state in a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptState {
    Delivered,
    Failed(DeliveryError),
    Expired,
    /// The message is still on its way, and another receipt follows.
    OnTheWay,
    /// Neither SMPP nor the settings define the state.
    Unknown,
}

/// The states that settings can name.
const RECEIPT_STATES: [(&str, ReceiptState); 5] = [
    ("delivered", ReceiptState::Delivered),
    ("failed", ReceiptState::Failed(DeliveryError::Undeliverable)),
    ("rejected", ReceiptState::Failed(DeliveryError::RejectedByNetwork)),
    ("expired", ReceiptState::Expired),
    ("enroute", ReceiptState::OnTheWay),
];

/// Type of number and numbering plan (SMPP 3.4, 5.2.5 and 5.2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressType {
    pub ton: u8,
    pub npi: u8,
}

impl AddressType {
    const INTERNATIONAL: Self = Self { ton: 1, npi: 1 };
    const NETWORK_SPECIFIC: Self = Self { ton: 3, npi: 0 };
    const ALPHANUMERIC: Self = Self { ton: 5, npi: 0 };
}

impl SmppSettings {
    pub(super) fn named_states(&self) -> NamedStates {
        let named = |(name, state): (&String, &ReceiptState)| {
            let meaning = match state {
                ReceiptState::Delivered => Some((MessageStatus::Delivered, None)),
                ReceiptState::Failed(code) => Some((MessageStatus::Failed, Some(*code))),
                ReceiptState::Expired => {
                    Some((MessageStatus::Expired, Some(DeliveryError::ValidityExpired)))
                }
                ReceiptState::OnTheWay | ReceiptState::Unknown => None,
            };
            (name.clone(), meaning)
        };
        NamedStates { states: self.states.iter().map(named).collect(), errors: self.errors.clone() }
    }

    /// Returns the address type of a sender. If the settings don't set it, it depends on the
    /// sender's form: a few digits are a short code, more digits are an international number, and
    /// anything else is a name.
    pub fn source(&self, sender: &str) -> AddressType {
        let digits = sender.bytes().all(|b| b.is_ascii_digit());
        self.source.unwrap_or(match (digits, sender.len()) {
            (true, ..=SHORT_CODE_DIGITS_MAX) => AddressType::NETWORK_SPECIFIC,
            (true, _) => AddressType::INTERNATIONAL,
            (false, _) => AddressType::ALPHANUMERIC,
        })
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let host_and_port = "host and port like smpp.example.org:2775";
        let address = fields.parsed("address", None, host_and_port, Address::parse);
        let backup_address = fields.optional("backup_address", host_and_port, Address::parse);
        let system_id = c_string(fields, "system_id", None, SYSTEM_ID_MAX);
        let password = password(fields);
        let system_type = c_string(fields, "system_type", Some(""), SYSTEM_TYPE_MAX);
        let address_range = c_string(fields, "address_range", Some(""), ADDRESS_RANGE_MAX);
        let bind = fields.choice("bind", Some("transceiver"), &BIND_MODES);
        let connections = fields.within("connections", "1", &(1..=CONNECTIONS_LIMIT));
        let window = fields.within("window", "100", &(1..=WINDOW_LIMIT));
        let rate = fields.within("rate", "0", &(0..=RATE_LIMIT));
        let carrier_rate = fields.within("carrier_rate", "0", &(0..=RATE_LIMIT));
        let sender_rate = fields.within("sender_rate", "0", &(0..=RATE_LIMIT));
        let answer_timeout = fields.within("answer_timeout", "30", &ANSWER_TIMEOUT_LIMITS_S);
        let enquire_link = fields.within("enquire_link", "30", &ENQUIRE_LINK_LIMITS_S);
        let service_type = c_string(fields, "service_type", Some(""), SERVICE_TYPE_MAX);
        let alphabets = SubmitAlphabet::ALL.map(|alphabet| (alphabet.as_str(), alphabet));
        let alphabet = fields.choice("alphabet", Some("gsm7"), &alphabets);
        let usual = if alphabet == Some(SubmitAlphabet::Latin1) { "3" } else { "0" };
        let data_coding = fields.within("data_coding", usual, &(0..=u8::MAX));
        let vendors = VendorTlv::read_all(fields);
        let submit_status = SubmitStatus::read(fields);
        let forms = MessageIdForm::ALL.map(|form| (form.as_str(), form));
        let message_id = fields.choice("message_id", Some("text"), &forms);
        let ways = Segmentation::ALL.map(|way| (way.as_str(), way));
        let segmentation = fields.choice("segmentation", Some("udh"), &ways);
        let alphabets = DefaultAlphabet::ALL.map(|alphabet| (alphabet.as_str(), alphabet));
        let default_alphabet = fields.choice("default_alphabet", Some("gsm7"), &alphabets);
        let validity_period =
            fields.choice("validity_period", Some("true"), &[("true", true), ("false", false)]);
        let states = fields.words("states", &RECEIPT_STATES);
        let codes = DeliveryError::ALL.map(|code| (code.as_str(), code));
        let errors = fields.words("errors", &codes);
        let tls = ClientTls::read(fields);
        let source = address_type(fields, "source");
        let destination = address_type(fields, "destination");
        Some(Self {
            address: address?,
            backup_address,
            tls,
            system_id: system_id?,
            password: password?,
            system_type: system_type?,
            address_range: address_range?,
            bind: bind?,
            connections: connections?,
            window: window?,
            rate: rate?,
            carrier_rate: carrier_rate?,
            sender_rate: sender_rate?,
            answer_timeout: Duration::from_secs(answer_timeout?),
            enquire_link: Duration::from_secs(enquire_link?),
            service_type: service_type?,
            alphabet: alphabet?,
            data_coding: data_coding?,
            tlvs: vendors,
            submit_status,
            message_id: message_id?,
            segmentation: segmentation?,
            default_alphabet: default_alphabet?,
            validity_period: validity_period?,
            states,
            errors,
            source,
            destination: destination.unwrap_or(AddressType::INTERNATIONAL),
        })
    }
}

impl ClientTls {
    pub(super) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let tls = fields.choice("tls", Some("false"), &[("true", true), ("false", false)]);
        let ca_file = fields.authorities("tls_ca");
        let client = fields.identity("tls_cert", "tls_key");
        for (name, is_set) in [("tls_ca", ca_file.is_some()), ("tls_cert", client.is_some())] {
            if is_set && tls == Some(false) {
                fields.problem(&format!("{name} is set, so tls must be true"));
            }
        }
        (tls == Some(true)).then_some(Self { ca_file, client })
    }
}

fn fits(text: &str, chars_max: usize) -> bool {
    text.len() <= chars_max && text.bytes().all(|b| b.is_ascii_graphic() || b == b' ')
}

fn c_string(
    fields: &mut Fields<'_>,
    name: &str,
    default: Option<&str>,
    chars_max: usize,
) -> Option<String> {
    let wanted = format!("at most {chars_max} ASCII characters");
    fields.parsed(name, default, &wanted, |text| fits(text, chars_max).then(|| text.to_owned()))
}

fn password(fields: &mut Fields<'_>) -> Option<Secret> {
    let password = fields.required_secret("password")?;
    if fits(password.expose(), PASSWORD_MAX) {
        return Some(password);
    }
    fields.problem(&format!("password must be at most {PASSWORD_MAX} ASCII characters"));
    None
}

/// Reads `source_ton` and `source_npi`, or the pair for `destination`. Either both are set or
/// neither.
fn address_type(fields: &mut Fields<'_>, which: &str) -> Option<AddressType> {
    let mut part = |name: &str| {
        fields.optional(&format!("{which}_{name}"), "a whole number from 0 to 255", |text| {
            text.parse().ok()
        })
    };
    match (part("ton"), part("npi")) {
        (Some(ton), Some(npi)) => Some(AddressType { ton, npi }),
        (None, None) => None,
        _ => {
            fields.problem(&format!("{which}_ton and {which}_npi must be set together"));
            None
        }
    }
}
