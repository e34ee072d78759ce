//! The bytes that a carrier sends over SMPP.

use bytes::BytesMut;
use domain::inbound::{DefaultAlphabet, PartPosition, ReceivedPart, join, segments};
use smpp::fuzzing::{ReadPdu, next};
use smpp::trace::{TracedPdu, describe};
use smpp::{Delivery, receipt};

use crate::pieces::{option, pieces};

/// The PDUs of a stream, and the bytes or the impossible length at its end.
type Stream = (Vec<ReadPdu>, Result<BytesMut, u32>);

/// A stream is read the same in any pieces, no byte is lost, and each PDU can be shown.
pub fn pdu(data: &[u8]) {
    let (seed, stream) = option(data);
    let whole = read([stream]);
    assert_eq!(whole, read(pieces(stream, seed)));

    let (pdus, rest) = whole;
    let mut octets: Vec<u8> = pdus.iter().flat_map(|pdu| pdu.octets.clone()).collect();
    if let Ok(rest) = rest {
        octets.extend(rest);
        assert_eq!(octets, stream);
    } else {
        assert!(stream.starts_with(&octets));
    }
    for pdu in pdus {
        show(&pdu.octets);
        if let Some(delivery) = pdu.delivery {
            deliver(&delivery);
        }
    }
}

fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Stream {
    let mut incoming = BytesMut::new();
    let mut pdus = Vec::new();
    for piece in pieces {
        incoming.extend_from_slice(piece);
        loop {
            match next(&mut incoming) {
                Ok(Some(pdu)) => pdus.push(pdu),
                Ok(None) => break,
                // Nothing after this can be read.
                Err(length) => return (pdus, Err(length)),
            }
        }
    }
    (pdus, Ok(incoming))
}

/// A description is one line, and a mask changes neither the length nor what a mask left.
fn show(octets: &[u8]) {
    let line = describe(octets);
    assert!(!line.contains(char::is_control), "{line:?}");
    for all in [true, false] {
        let mut pdu = TracedPdu { source: 0, link: 0, sent: false, octets: octets.to_vec() };
        pdu.mask(all);
        assert_eq!(pdu.octets.len(), octets.len());
        let masked = pdu.octets.clone();
        pdu.mask(all);
        assert_eq!(pdu.octets, masked);
    }
}

/// A delivery can be read as a receipt and as an inbound message.
fn deliver(delivery: &Delivery) {
    receipt::parse(delivery);
    let Delivery { esm_class, data_coding, text, .. } = delivery;
    let sar = match (
        delivery.sar_msg_ref_num,
        delivery.sar_total_segments,
        delivery.sar_segment_seqnum,
    ) {
        (Some(reference), Some(total), Some(sequence)) => {
            PartPosition::of_sar(reference, total, sequence)
        }
        _ => None,
    };
    let parts = [ReceivedPart::parse(*esm_class, *data_coding, text, sar)];
    for alphabet in DefaultAlphabet::ALL {
        assert!(!join(&parts, alphabet).contains('\0'));
        assert!(segments(&parts, alphabet) >= 1);
    }
}
