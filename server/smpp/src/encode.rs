//! PDUs that we write, in the codec's types.

use bytes::BytesMut;
use rusmpp::pdus::{BindReceiver, BindTransceiver, BindTransmitter, DeliverSmResp, SubmitSm};
use rusmpp::pdus::{DataSmResp, builders::SubmitSmBuilder};
use rusmpp::tlvs::MessageSubmissionRequestTlvValue as Tlv;
use rusmpp::tokio_codec::CommandCodec;
use rusmpp::types::{AnyOctetString, COctetString, EmptyOrFullCOctetString, OctetString};
use rusmpp::values::{InterfaceVersion, MessagePayload, Npi, ServiceType, Ton};
use rusmpp::{Command, CommandStatus, Pdu};
use tokio_util::codec::Encoder;

use crate::frames::MAX_LENGTH;
use crate::{Settings, Submit, status_code};

/// Which way a link is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Transceiver,
    Transmitter,
    Receiver,
}

/// Appends a PDU.
pub(crate) fn put(out: &mut BytesMut, status: u32, sequence: u32, pdu: Pdu) {
    let command = Command::new(CommandStatus::from(status), sequence, pdu);
    // The codec's error is that of a sink, and appending to memory can't fail.
    let _ = CommandCodec::new().encode(&command, out);
}

/// The bind PDU of a role.
///
/// # Errors
/// Names a setting that SMPP can't carry.
pub(crate) fn bind(settings: &Settings, role: Role) -> Result<Pdu, &'static str> {
    let system_id = text(&settings.system_id).ok_or("system_id isn't 1 to 15 ASCII characters")?;
    let password = text(&settings.password).ok_or("password isn't 0 to 8 ASCII characters")?;
    let system_type =
        text(&settings.system_type).ok_or("system_type isn't 0 to 12 ASCII characters")?;
    let (version, range) = (InterfaceVersion::Smpp3_4, COctetString::empty());
    let (ton, npi) = (Ton::Unknown, Npi::Unknown);
    Ok(match role {
        Role::Transceiver => {
            BindTransceiver::new(system_id, password, system_type, version, ton, npi, range).into()
        }
        Role::Transmitter => {
            BindTransmitter::new(system_id, password, system_type, version, ton, npi, range).into()
        }
        Role::Receiver => {
            BindReceiver::new(system_id, password, system_type, version, ton, npi, range).into()
        }
    })
}

/// An estimate of the octets of a submit_sm.
pub(crate) fn size(submit: &Submit) -> usize {
    let payload = submit.message_payload.as_ref().map_or(0, Vec::len);
    128 + submit.short_message.len() + payload
}

/// A submit_sm; the error is the status that an SMSC would refuse it with.
pub(crate) fn submit(submit: Submit) -> Result<Pdu, u32> {
    let payload = submit.message_payload.as_ref().map_or(0, Vec::len);
    if payload > MAX_LENGTH - 1024 {
        return Err(status_code::INVALID_MESSAGE_LENGTH);
    }
    let validity = submit.validity_period.as_deref().unwrap_or_default();
    let message = OctetString::from_vec(submit.short_message)
        .map_err(|_| status_code::INVALID_MESSAGE_LENGTH)?;
    let mut builder = SubmitSm::builder()
        .service_type(ServiceType::new(
            text(&submit.service_type).ok_or(status_code::INVALID_SERVICE_TYPE)?,
        ))
        .source_addr_ton(submit.source.ton.into())
        .source_addr_npi(submit.source.npi.into())
        .source_addr(text(&submit.source.digits).ok_or(status_code::INVALID_SOURCE)?)
        .dest_addr_ton(submit.destination.ton.into())
        .dest_addr_npi(submit.destination.npi.into())
        .destination_addr(text(&submit.destination.digits).ok_or(status_code::INVALID_DESTINATION)?)
        .esm_class(submit.esm_class.into())
        .validity_period(time(validity).ok_or(status_code::INVALID_VALIDITY)?)
        .registered_delivery(submit.registered_delivery.into())
        .data_coding(submit.data_coding.into())
        .short_message(message);
    builder = tlv(builder, submit.sar_msg_ref_num.map(Tlv::SarMsgRefNum));
    builder = tlv(
        builder,
        submit.sar_total_segments.map(Tlv::SarTotalSegments),
    );
    builder = tlv(
        builder,
        submit.sar_segment_seqnum.map(Tlv::SarSegmentSeqnum),
    );
    let reference = submit.user_message_reference.map(Into::into);
    builder = tlv(builder, reference.map(Tlv::UserMessageReference));
    let payload = submit.message_payload.map(AnyOctetString::from_vec);
    let payload = payload.map(|payload| Tlv::MessagePayload(MessagePayload::new(payload)));
    Ok(tlv(builder, payload).build().into())
}

/// The response to a deliver_sm or a data_sm. Its message_id is unused (SMPP 3.4, 4.6.2).
pub(crate) fn delivered(data: bool) -> Pdu {
    if data {
        DataSmResp::new(COctetString::empty(), Vec::new()).into()
    } else {
        DeliverSmResp::new(COctetString::empty(), Vec::new()).into()
    }
}

fn tlv(builder: SubmitSmBuilder, value: Option<Tlv>) -> SubmitSmBuilder {
    match value {
        Some(value) => builder.push_tlv(value),
        None => builder,
    }
}

fn text<const MAX: usize>(text: &str) -> Option<COctetString<1, MAX>> {
    text.parse().ok()
}

fn time(text: &str) -> Option<EmptyOrFullCOctetString<17>> {
    text.parse().ok()
}
