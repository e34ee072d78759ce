//! Reads a `submit_sm`.

use serde_json::{Value, json};
use smpp34::{TlvList as _, submit_sm};

use crate::gsm;

/// The bit of `esm_class` for a text that begins with a user data header.
const HEADER: u8 = 0x40;
const UCS2: u8 = 8;

/// Returns the line to print.
pub fn line(pdu: &submit_sm, refused: bool) -> Value {
    let payload = pdu.tlvs.message_payload();
    let octets = payload.unwrap_or(&pdu.short_message);
    let (header, octets) = match octets {
        [length, rest @ ..] if pdu.esm_class & HEADER != 0 => {
            rest.split_at_checked(usize::from(*length)).unwrap_or_default()
        }
        whole => (&[][..], whole),
    };
    json!({
        "event": "submit",
        "source": address(pdu.source_addr_ton, pdu.source_addr_npi, &pdu.source_addr),
        "destination": address(pdu.dest_addr_ton, pdu.dest_addr_npi, &pdu.destination_addr),
        "data_coding": pdu.data_coding,
        "registered_delivery": pdu.registered_delivery,
        "text": text(pdu.data_coding, octets),
        "payload": payload.is_some(),
        "segment": by_parameters(pdu).or_else(|| by_header(header)),
        "refused": refused,
    })
}

fn address(ton: u8, npi: u8, digits: &str) -> Value {
    json!({ "ton": ton, "npi": npi, "digits": digits })
}

fn text(data_coding: u8, octets: &[u8]) -> Option<String> {
    if data_coding != UCS2 {
        return gsm::decode(octets);
    }
    let (units, odd) = octets.as_chunks();
    let units: Vec<u16> = units.iter().map(|unit| u16::from_be_bytes(*unit)).collect();
    String::from_utf16(&units).ok().filter(|_| odd.is_empty())
}

fn by_parameters(pdu: &submit_sm) -> Option<Value> {
    Some(json!({
        "by": "sar",
        "reference": pdu.tlvs.sar_msg_ref_num()?,
        "total": pdu.tlvs.sar_total_segments()?,
        "number": pdu.tlvs.sar_segment_seqnum()?,
    }))
}

/// Returns the position of this part from the header (3GPP TS 23.040, 9.2.3.24).
fn by_header(mut header: &[u8]) -> Option<Value> {
    while let [kind, length, rest @ ..] = header {
        let (element, after) = rest.split_at_checked(usize::from(*length))?;
        header = after;
        let (reference, total, number) = match (kind, element) {
            (0, [reference, total, number]) => (u16::from(*reference), total, number),
            (8, [high, low, total, number]) => (u16::from_be_bytes([*high, *low]), total, number),
            _ => continue,
        };
        return Some(
            json!({ "by": "udh", "reference": reference, "total": total, "number": number }),
        );
    }
    None
}
