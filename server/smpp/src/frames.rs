//! Splits the peer's bytes into PDUs, and reads their fields.
//!
//! We parse PDUs by hand because the codec rejects a whole PDU if a TLV lacks its NUL or an address
//! is one digit too long. A rejected receipt would be lost.

use bytes::{Buf, Bytes, BytesMut};
use rusmpp::CommandId;
use rusmpp::tlvs::TlvTag;

use crate::Delivery;

/// The length of the shortest PDU: a header.
pub(crate) const MIN_LENGTH: usize = 16;
/// The length of the longest PDU that we read or write.
pub(crate) const MAX_LENGTH: usize = 64 * 1024;

/// One PDU.
pub(crate) struct Frame {
    pub(crate) command: CommandId,
    pub(crate) status: u32,
    pub(crate) sequence: u32,
    pub(crate) body: Bytes,
}

impl Frame {
    /// Returns the octets of the PDU, with its header.
    pub(crate) fn octets(&self) -> Vec<u8> {
        let length = u32::try_from(MIN_LENGTH + self.body.len()).unwrap_or(u32::MAX);
        let header = [length, self.command.into(), self.status, self.sequence];
        header.into_iter().flat_map(u32::to_be_bytes).chain(self.body.iter().copied()).collect()
    }
}

/// The length of a PDU is out of bounds, so we can't know where the next PDU begins.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadLength(pub(crate) u32);

/// Takes the next PDU if it was received in full.
///
/// # Errors
/// Fails if the length is out of bounds, even before the rest of the PDU is received.
pub(crate) fn next(incoming: &mut BytesMut) -> Result<Option<Frame>, BadLength> {
    let Some(length) = incoming.first_chunk::<4>() else {
        return Ok(None);
    };
    let announced = u32::from_be_bytes(*length);
    let length = usize::try_from(announced).map_err(|_| BadLength(announced))?;
    if !(MIN_LENGTH..=MAX_LENGTH).contains(&length) {
        return Err(BadLength(announced));
    }
    if incoming.len() < length {
        return Ok(None);
    }
    let mut frame = incoming.split_to(length).freeze();
    frame.advance(4);
    Ok(Some(Frame {
        command: frame.get_u32().into(),
        status: frame.get_u32(),
        sequence: frame.get_u32(),
        body: frame,
    }))
}

/// Returns a message_id: the text before the NUL, or the whole value if the peer forgot the NUL.
pub(crate) fn message_id(body: &[u8]) -> Option<String> {
    let id = body.split(|byte| *byte == 0).next()?;
    let id = std::str::from_utf8(id).ok()?.trim();
    (!id.is_empty()).then(|| id.to_owned())
}

/// Reads the body of a deliver_sm. Returns `None` if it ends before its last mandatory field.
pub(crate) fn deliver_sm(body: Bytes) -> Option<Delivery> {
    let mut fields = Fields(body);
    let mut delivery = addressed(&mut fields)?;
    fields.skip(2)?; // protocol_id, priority_flag
    fields.text()?; // schedule_delivery_time
    fields.text()?; // validity_period
    fields.skip(2)?; // registered_delivery, replace_if_present_flag
    delivery.data_coding = fields.byte()?;
    fields.skip(1)?; // sm_default_msg_id
    let length = fields.byte()?;
    delivery.text = fields.take(usize::from(length))?.to_vec();
    fields.tlvs(&mut delivery);
    Some(delivery)
}

/// Reads the body of a data_sm. Returns `None` if it ends before its last mandatory field.
pub(crate) fn data_sm(body: Bytes) -> Option<Delivery> {
    let mut fields = Fields(body);
    let mut delivery = addressed(&mut fields)?;
    fields.skip(1)?; // registered_delivery
    delivery.data_coding = fields.byte()?;
    fields.tlvs(&mut delivery);
    Some(delivery)
}

/// Reads the fields that deliver_sm and data_sm begin with.
fn addressed(fields: &mut Fields) -> Option<Delivery> {
    fields.text()?; // service_type
    fields.skip(2)?; // source ton, npi
    let source = fields.text()?;
    fields.skip(2)?; // destination ton, npi
    let destination = fields.text()?;
    Some(Delivery { source, destination, esm_class: fields.byte()?, ..Delivery::default() })
}

/// The unread part of a body.
struct Fields(Bytes);

impl Fields {
    fn take(&mut self, count: usize) -> Option<Bytes> {
        (self.0.len() >= count).then(|| self.0.split_to(count))
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        self.take(count).map(drop)
    }

    fn byte(&mut self) -> Option<u8> {
        self.0.try_get_u8().ok()
    }

    /// Reads a C-octet string of any length.
    fn text(&mut self) -> Option<String> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let text = self.take(end)?;
        self.skip(1)?;
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// Reads the TLVs. Stops at a TLV that is cut off, and skips one that has the wrong size.
    fn tlvs(&mut self, delivery: &mut Delivery) {
        while let (Ok(tag), Ok(length)) = (self.0.try_get_u16(), self.0.try_get_u16()) {
            let Some(value) = self.take(usize::from(length)) else {
                return;
            };
            match TlvTag::from(tag) {
                TlvTag::ReceiptedMessageId => delivery.receipted_message_id = message_id(&value),
                TlvTag::UserMessageReference => {
                    delivery.user_message_reference =
                        value.as_ref().try_into().ok().map(u16::from_be_bytes);
                }
                TlvTag::NetworkErrorCode => {
                    delivery.network_error_code = value.as_ref().try_into().ok();
                }
                TlvTag::MessagePayload if delivery.text.is_empty() => {
                    delivery.text = value.to_vec();
                }
                TlvTag::SarMsgRefNum => {
                    delivery.sar_msg_ref_num =
                        value.as_ref().try_into().ok().map(u16::from_be_bytes);
                }
                TlvTag::SarTotalSegments => delivery.sar_total_segments = value.first().copied(),
                TlvTag::SarSegmentSeqnum => delivery.sar_segment_seqnum = value.first().copied(),
                TlvTag::MessageState => delivery.message_state = value.first().copied(),
                _ => {}
            }
        }
    }
}
