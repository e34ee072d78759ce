//! Turns a message into SMPP submits (3.4, 4.4.1).

use ::smpp::{Address, Submit, Tlv};
use domain::Timestamp;
use domain::message::parts::{Concatenation, Part, Segmentation, parts_in};
use service::{Claimed, user_reference};
use tokio::time::Instant;

use super::super::application;
use crate::config::carriers::{AddressType, SmppSettings, TlvFacts};

/// `esm_class`: the text begins with a user data header (5.2.12).
const UDH_INDICATOR: u8 = 0x40;
/// `data_coding`: the carrier's default alphabet (5.2.19).
const DEFAULT_ALPHABET: u8 = 0;
/// `registered_delivery`: requests a receipt for every final status (5.2.17).
const RECEIPT: u8 = 1;

/// Returns a submit for each part, in order. The caller sets tags and deadlines, and decides whether
/// they have a validity period.
pub(super) fn parts(
    message: &Claimed,
    settings: &SmppSettings,
    with_validity: bool,
    now: Timestamp,
) -> Vec<Submit> {
    let text = message.message.as_str();
    // The reference is the same for every claim, so that parts of two claims fit together.
    let reference = user_reference(message.id, 0);
    let cut = |way| parts_in(settings.alphabet, text, way, reference);
    let parts = cut(settings.segmentation)
        // A text with more parts than can be numbered is submitted in one piece.
        .or_else(|_| cut(Segmentation::Payload))
        .unwrap_or_default();
    let sender = &message.sender;
    let template = Submit {
        tag: 0,
        not_after: Instant::now(),
        is_secret: message.code.is_some(),
        service_type: settings.service_type.clone(),
        source: address(settings.source(sender), sender.clone()),
        destination: address(settings.destination, message.address.clone()),
        esm_class: 0,
        validity_period: with_validity.then(|| validity(message.expires_at, now)),
        registered_delivery: RECEIPT,
        data_coding: 0,
        short_message: Vec::new(),
        sar_msg_ref_num: None,
        sar_total_segments: None,
        sar_segment_seqnum: None,
        message_payload: None,
        user_message_reference: None,
        tlvs: tlvs(message, settings),
    };
    (1..)
        .zip(parts)
        .map(|(segment, mut part)| {
            if part.data_coding == DEFAULT_ALPHABET {
                part.data_coding = settings.data_coding;
            }
            submit(&template, part, user_reference(message.id, segment))
        })
        .collect()
}

fn tlvs(message: &Claimed, settings: &SmppSettings) -> Vec<Tlv> {
    if settings.tlvs.is_empty() {
        return Vec::new();
    }
    let transid = message.id.to_string();
    let application = application(message);
    let facts = TlvFacts {
        transid: &transid,
        number: &message.address,
        sender: &message.sender,
        application: &application,
    };
    settings.tlvs.iter().filter_map(|tlv| tlv.of(facts)).collect()
}

fn address(kind: AddressType, digits: String) -> Address {
    Address { ton: kind.ton, npi: kind.npi, digits }
}

fn submit(template: &Submit, part: Part, user_reference: u16) -> Submit {
    let mut submit = Submit {
        data_coding: part.data_coding,
        user_message_reference: Some(user_reference),
        ..template.clone()
    };
    match part.concatenation {
        Concatenation::Alone => submit.short_message = part.bytes,
        Concatenation::Header => {
            submit.esm_class = UDH_INDICATOR;
            submit.short_message = part.bytes;
        }
        Concatenation::Sar { reference, total, sequence } => {
            submit.sar_msg_ref_num = Some(reference);
            submit.sar_total_segments = Some(total);
            submit.sar_segment_seqnum = Some(sequence);
            submit.short_message = part.bytes;
        }
        Concatenation::Payload => submit.message_payload = Some(part.bytes),
    }
    submit
}

/// Formats the remaining time of the message in SMPP's relative form (7.1.1.2).
fn validity(expires_at: Timestamp, now: Timestamp) -> String {
    let seconds = (expires_at.ms_since(now) / 1000).max(1);
    let (minutes, seconds) = (seconds / 60, seconds % 60);
    let (hours, minutes) = (minutes / 60, minutes % 60);
    let (days, hours) = (hours / 24, hours % 24);
    format!("0000{days:02}{hours:02}{minutes:02}{seconds:02}000R")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_validity_is_what_is_left() {
        let at = Timestamp::from_unix_ms;
        for (left_ms, written) in [
            (48 * 3_600_000, "000002000000000R"),
            (48 * 3_600_000 - 1000, "000001235959000R"),
            (61_999, "000000000101000R"),
            (1, "000000000001000R"),
        ] {
            assert_eq!(validity(at(left_ms), at(0)), written);
        }
    }
}
