//! Traces: copies of the PDUs on a connection, and their text form.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::BytesMut;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::command_status;

/// The length of the header of a PDU.
const HEADER: usize = 16;
/// How many digits at the end of a number a mask leaves visible.
const SHOWN_DIGITS: usize = 3;
/// Numbers with fewer digits are short codes, which belong to nobody.
const NUMBER_DIGITS_MIN: usize = 7;
/// The bits of `esm_class` that say what a delivery is (SMPP 3.4, 5.2.12). 0 is a message.
const DELIVERY_KIND: u8 = 0b0011_1100;
const RECEIPT: u8 = 0b0000_0100;
const INTERMEDIATE_NOTIFICATION: u8 = 0b0010_0000;
/// `esm_class`: the text begins with a user data header.
const UDH_INDICATOR: u8 = 0x40;
const MESSAGE_PAYLOAD: u16 = 0x0424;
const SUBMIT_SM: u32 = 4;

/// A PDU that was sent or received.
#[derive(Debug, Clone)]
pub struct TracedPdu {
    /// The source that the caller chose for the connection.
    pub source: usize,
    /// The index of the link: 1 for the receiver of a connection with two binds.
    pub link: usize,
    /// Whether we sent it.
    pub sent: bool,
    /// All octets, with the header.
    pub octets: Vec<u8>,
}

/// The receivers of copies of a connection's PDUs. Usually there are none.
#[derive(Default)]
pub(crate) struct Taps {
    is_open: AtomicBool,
    taps: Mutex<Vec<(usize, mpsc::Sender<TracedPdu>)>>,
}

impl Taps {
    pub(crate) fn add(&self, source: usize, to: mpsc::Sender<TracedPdu>) {
        self.taps.lock().push((source, to));
        self.is_open.store(true, Ordering::Relaxed);
    }

    /// Checked for every PDU.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Copies a PDU to the receivers. A receiver that is too slow misses it.
    pub(crate) fn copy(&self, link: usize, sent: bool, octets: &[u8]) {
        let mut taps = self.taps.lock();
        taps.retain(|(source, to)| {
            let pdu = TracedPdu { source: *source, link, sent, octets: octets.to_vec() };
            !matches!(to.try_send(pdu), Err(mpsc::error::TrySendError::Closed(_)))
        });
        self.is_open.store(!taps.is_empty(), Ordering::Relaxed);
    }

    /// Copies the PDU that `put` appends.
    pub(crate) fn copy_put(
        &self,
        link: usize,
        out: &mut BytesMut,
        put: impl FnOnce(&mut BytesMut),
    ) {
        let start = out.len();
        put(out);
        if self.is_open() {
            self.copy(link, true, &out[start..]);
        }
    }
}

impl TracedPdu {
    /// Hides the password of a bind. Also hides the copy of a message's text in its receipt, which
    /// may be a one-time code. Unless `all` is true, also hides the texts of messages, unreadable
    /// fields, and all but the last digits of numbers. The length stays the same.
    pub fn mask(&mut self, all: bool) {
        let pdu = Pdu::parse(&self.octets);
        let hidden: Vec<Range<usize>> =
            pdu.fields.iter().filter_map(|field| field.hidden(&pdu, all)).collect();
        for range in hidden {
            self.octets[range].fill(b'*');
        }
    }
}

/// Hides the text of a message, and unreadable fields. The length stays the same.
pub(crate) fn hide_text(octets: &mut [u8]) {
    let pdu = Pdu::parse(octets);
    let is_hidden = |field: &&Field| matches!(field.kind, Kind::Message | Kind::Unknown);
    let hidden = pdu.fields.iter().filter(is_hidden).map(|field| field.range.clone());
    for range in hidden.collect::<Vec<_>>() {
        octets[range].fill(b'*');
    }
}

pub fn describe(octets: &[u8]) -> String {
    let pdu = Pdu::parse(octets);
    let mut line = pdu.name();
    // Writing into a `String` never fails.
    let _ = write!(line, " seq={}", pdu.sequence);
    if pdu.is_response() {
        let known = command_status::find(pdu.status);
        let name = known.map_or(if pdu.status == 0 { "OK" } else { "" }, |known| known.name);
        let _ = write!(line, " status=0x{:08x} {name}", pdu.status);
    }
    for field in &pdu.fields {
        let value = &octets[field.range.clone()];
        let name = &field.name;
        let _ = match (field.kind, value) {
            (Kind::Number, [number]) => write!(line, " {name}={number}"),
            (_, value) => write!(line, " {name}=\"{}\"", value.escape_ascii()),
        };
    }
    line
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Text,
    Password,
    Address,
    /// The text of a message or of a receipt.
    Message,
    /// A field that may contain anything.
    Unknown,
}

struct Field {
    name: String,
    kind: Kind,
    range: Range<usize>,
}

/// A PDU with the positions of its fields.
struct Pdu<'a> {
    octets: &'a [u8],
    command: u32,
    status: u32,
    sequence: u32,
    fields: Vec<Field>,
    at: usize,
}

impl<'a> Pdu<'a> {
    fn parse(octets: &'a [u8]) -> Self {
        let word = |at: usize| {
            let word = octets.get(at..at + 4).and_then(|word| word.try_into().ok());
            word.map_or(0, u32::from_be_bytes)
        };
        let mut pdu = Self {
            octets,
            command: word(4),
            status: word(8),
            sequence: word(12),
            fields: Vec::new(),
            at: HEADER.min(octets.len()),
        };
        let _ = pdu.read();
        let rest = pdu.octets.len() - pdu.at;
        if rest > 0 {
            let _ = pdu.field("rest", Kind::Unknown, rest);
        }
        pdu
    }

    const fn is_response(&self) -> bool {
        self.command & 0x8000_0000 != 0
    }

    fn name(&self) -> String {
        let name = match self.command & 0x7FFF_FFFF {
            0x0000 => "generic_nack",
            0x0001 => "bind_receiver",
            0x0002 => "bind_transmitter",
            0x0003 => "query_sm",
            0x0004 => "submit_sm",
            0x0005 => "deliver_sm",
            0x0006 => "unbind",
            0x0009 => "bind_transceiver",
            0x000B => "outbind",
            0x0015 => "enquire_link",
            0x0102 => "alert_notification",
            0x0103 => "data_sm",
            other => return format!("command 0x{other:08x}"),
        };
        let response = self.is_response() && self.command != 0x8000_0000;
        format!("{name}{}", if response { "_resp" } else { "" })
    }

    /// Reads the body. Returns `None` at a field that is cut off.
    fn read(&mut self) -> Option<()> {
        match self.command {
            0x01 | 0x02 | 0x09 => {
                self.text("system_id", Kind::Text)?;
                self.text("password", Kind::Password)?;
                self.text("system_type", Kind::Text)?;
                self.numbers(&["interface_version", "addr_ton", "addr_npi"])?;
                self.text("address_range", Kind::Text)?;
            }
            0x0B => {
                self.text("system_id", Kind::Text)?;
                self.text("password", Kind::Password)?;
            }
            0x04 | 0x05 => {
                self.addresses()?;
                self.numbers(&["esm_class", "protocol_id", "priority_flag"])?;
                self.text("schedule_delivery_time", Kind::Text)?;
                self.text("validity_period", Kind::Text)?;
                self.numbers(&["registered_delivery", "replace_if_present_flag"])?;
                self.numbers(&["data_coding", "sm_default_msg_id", "sm_length"])?;
                let length = usize::from(self.octets[self.at - 1]);
                self.field("short_message", Kind::Message, length)?;
            }
            0x0103 => {
                self.addresses()?;
                self.numbers(&["esm_class", "registered_delivery", "data_coding"])?;
            }
            command if matches!(command & 0x7FFF_FFFF, 0x04 | 0x05 | 0x0103) => {
                self.text("message_id", Kind::Text)?;
            }
            0x8000_0001 | 0x8000_0002 | 0x8000_0009 => self.text("system_id", Kind::Text)?,
            0x15 | 0x06 | 0x8000_0015 | 0x8000_0006 | 0x8000_0000 => {}
            _ => return None,
        }
        while self.at < self.octets.len() {
            self.tlv()?;
        }
        Some(())
    }

    fn addresses(&mut self) -> Option<()> {
        self.text("service_type", Kind::Text)?;
        self.numbers(&["source_addr_ton", "source_addr_npi"])?;
        self.text("source_addr", Kind::Address)?;
        self.numbers(&["dest_addr_ton", "dest_addr_npi"])?;
        self.text("destination_addr", Kind::Address)
    }

    fn tlv(&mut self) -> Option<()> {
        let head: [u8; 4] = self.octets.get(self.at..self.at + 4)?.try_into().ok()?;
        let tag = u16::from_be_bytes([head[0], head[1]]);
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let (name, kind) = match tag {
            0x001E => ("receipted_message_id", Kind::Text),
            0x0204 => ("user_message_reference", Kind::Text),
            0x020C => ("sar_msg_ref_num", Kind::Text),
            0x020E => ("sar_total_segments", Kind::Number),
            0x020F => ("sar_segment_seqnum", Kind::Number),
            0x0210 => ("sc_interface_version", Kind::Number),
            0x0423 => ("network_error_code", Kind::Text),
            MESSAGE_PAYLOAD => ("message_payload", Kind::Message),
            0x0427 => ("message_state", Kind::Number),
            _ => return self.value(&format!("tlv_0x{tag:04x}"), Kind::Unknown, length),
        };
        self.value(name, kind, length)
    }

    /// Reads the value of a TLV.
    fn value(&mut self, name: &str, kind: Kind, length: usize) -> Option<()> {
        self.octets.get(self.at + 4..self.at + 4 + length)?;
        self.at += 4;
        self.field(name, kind, length)
    }

    fn field(&mut self, name: &str, kind: Kind, length: usize) -> Option<()> {
        let range = self.at..self.at + length;
        self.octets.get(range.clone())?;
        self.at = range.end;
        // Empty fields say nothing.
        if length > 0 {
            self.fields.push(Field { name: name.to_owned(), kind, range });
        }
        Some(())
    }

    fn numbers(&mut self, names: &[&str]) -> Option<()> {
        names.iter().try_for_each(|name| self.field(name, Kind::Number, 1))
    }

    /// Reads a C-octet string.
    fn text(&mut self, name: &str, kind: Kind) -> Option<()> {
        let length = self.octets[self.at..].iter().position(|octet| *octet == 0)?;
        self.field(name, kind, length)?;
        self.at += 1;
        Some(())
    }

    fn esm_class(&self) -> u8 {
        let found = self.fields.iter().find(|field| field.name == "esm_class");
        found.map_or(0, |field| self.octets[field.range.start])
    }
}

impl Field {
    /// Returns the octets to hide.
    fn hidden(&self, pdu: &Pdu<'_>, all: bool) -> Option<Range<usize>> {
        let Range { start, end } = self.range.clone();
        let value = &pdu.octets[start..end];
        let from = match self.kind {
            Kind::Password => start,
            Kind::Message if all && !is_receipt(pdu.esm_class()) => {
                // Some carriers don't mark receipts as receipts.
                let own = own_text(value).filter(|_| pdu.command != SUBMIT_SM);
                return own.map(|at| start + at..end);
            }
            _ if all && self.kind != Kind::Message => return None,
            Kind::Number | Kind::Text => return None,
            Kind::Address => {
                let digits = value.strip_prefix(b"+").unwrap_or(value);
                let is_number =
                    digits.len() >= NUMBER_DIGITS_MIN && digits.iter().all(u8::is_ascii_digit);
                return is_number.then(|| start..end - SHOWN_DIGITS);
            }
            Kind::Unknown => start,
            Kind::Message => start + shown_beginning(value, pdu.esm_class()),
        };
        Some(from..end)
    }
}

const fn is_receipt(esm_class: u8) -> bool {
    matches!(esm_class & DELIVERY_KIND, RECEIPT | INTERMEDIATE_NOTIFICATION)
}

/// Returns where the message's own text begins in a receipt. In UCS-2, each ASCII letter has a zero
/// octet before it.
fn own_text(text: &[u8]) -> Option<usize> {
    let lower = text.to_ascii_lowercase();
    let names: [&[u8]; 2] = [b"text:", b"t\0e\0x\0t\0:"];
    let ends = names.into_iter().filter_map(|name| {
        lower.windows(name.len()).position(|part| part == name).map(|at| at + name.len())
    });
    ends.min()
}

/// Returns how many octets at the beginning of a text may be shown: the user data header of a
/// message, or a receipt up to the message's own text. A receipt without the label of that text may
/// consist of nothing else. Recipients write the texts of acknowledgements (SMPP 3.4 §5.2.12).
fn shown_beginning(text: &[u8], esm_class: u8) -> usize {
    match esm_class & DELIVERY_KIND {
        0 => {}
        RECEIPT | INTERMEDIATE_NOTIFICATION => {
            return own_text(text).unwrap_or(0);
        }
        _ => return 0,
    }
    let has_header = esm_class & UDH_INDICATOR != 0;
    let header = text.first().filter(|_| has_header);
    header.map_or(0, |length| (usize::from(*length) + 1).min(text.len()))
}

#[cfg(test)]
mod tests;
