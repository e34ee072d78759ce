//! Submits that we write.

use arbitrary::{Result, Unstructured};
use bytes::BytesMut;
use smpp::{Address, Submit, Tlv, fuzzing};
use tokio::time::Instant;

/// The first number of a vendor's TLV. Smaller numbers may replace the submit's own fields.
const VENDORS: u16 = 0x1400;

/// A submit that SMPP can carry is one PDU, which says what the submit says.
pub fn submit(data: &[u8]) {
    let mut bytes = Unstructured::new(data);
    let (Ok(submit), Ok(sequence)) = (any_submit(&mut bytes), bytes.arbitrary()) else {
        return;
    };
    let Ok(mut octets) = fuzzing::write(submit.clone(), sequence) else {
        return;
    };
    let written = octets.to_vec();
    let Ok(Some(pdu)) = fuzzing::next(&mut octets) else {
        panic!("a submit isn't a PDU");
    };
    assert_eq!(octets, BytesMut::new());
    assert_eq!(pdu.octets, written);
    assert_eq!(written[12..16], sequence.to_be_bytes());
    let Some(read) = pdu.delivery else {
        panic!("a submit can't be read");
    };
    assert_eq!(read.source, submit.source.digits);
    assert_eq!(read.destination, submit.destination.digits);
    assert_eq!(read.esm_class, submit.esm_class);
    assert_eq!(read.data_coding, submit.data_coding);
    let payload = submit.message_payload.filter(|_| submit.short_message.is_empty());
    assert_eq!(read.text, payload.unwrap_or(submit.short_message));
    assert_eq!(read.sar_msg_ref_num, submit.sar_msg_ref_num);
    assert_eq!(read.sar_total_segments, submit.sar_total_segments);
    assert_eq!(read.sar_segment_seqnum, submit.sar_segment_seqnum);
    assert_eq!(read.user_message_reference, submit.user_message_reference);
}

fn any_submit(bytes: &mut Unstructured) -> Result<Submit> {
    Ok(Submit {
        tag: 0,
        not_after: Instant::now(),
        is_secret: false,
        service_type: any_text(bytes, &[0, 1, 5, 6])?,
        source: any_address(bytes)?,
        destination: any_address(bytes)?,
        esm_class: bytes.arbitrary()?,
        validity_period: if bytes.arbitrary()? {
            Some(any_text(bytes, &[0, 16, 17])?)
        } else {
            None
        },
        registered_delivery: bytes.arbitrary()?,
        data_coding: bytes.arbitrary()?,
        short_message: bytes.arbitrary()?,
        sar_msg_ref_num: bytes.arbitrary()?,
        sar_total_segments: bytes.arbitrary()?,
        sar_segment_seqnum: bytes.arbitrary()?,
        message_payload: bytes.arbitrary()?,
        user_message_reference: bytes.arbitrary()?,
        tlvs: bytes
            .arbitrary_iter::<(u16, Vec<u8>)>()?
            .map(|tlv| tlv.map(|(tag, value)| Tlv { tag: tag | VENDORS, value }))
            .collect::<Result<_>>()?,
    })
}

fn any_address(bytes: &mut Unstructured) -> Result<Address> {
    let (ton, npi) = bytes.arbitrary()?;
    Ok(Address { ton, npi, digits: any_text(bytes, &[0, 1, 6, 11, 20, 21])? })
}

/// Returns a text of one of these lengths. Most texts are ones that SMPP can carry.
fn any_text(bytes: &mut Unstructured, lengths: &[usize]) -> Result<String> {
    let length = *bytes.choose(lengths)?;
    Ok(bytes.bytes(length)?.iter().map(|octet| char::from(octet & 0x7f)).collect())
}
