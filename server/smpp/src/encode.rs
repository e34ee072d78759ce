//! Encodes the PDUs that we write, with the codec's types.

use std::str::FromStr;

use bytes::BytesMut;
use rusmpp::pdus::{
    BindReceiver, BindTransceiver, BindTransmitter, DataSmResp, DeliverSmResp, SubmitSm,
};
use rusmpp::tlvs::MessageSubmissionRequestTlvValue as Tlv;
use rusmpp::tokio_codec::CommandCodec;
use rusmpp::types::{AnyOctetString, COctetString, OctetString};
use rusmpp::values::{InterfaceVersion, MessagePayload, Npi, ServiceType, Ton};
use rusmpp::{Command, CommandId, CommandStatus, Pdu};
use tokio_util::codec::Encoder;

use crate::frames::MAX_LENGTH;
use crate::{BindMode, Settings, Submit, status_code};

/// The maximum length of a password in SMPP 3.4 (5.2.2).
const PASSWORD_MAX: usize = 8;

/// How a link is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Transceiver,
    Transmitter,
    Receiver,
}

impl Role {
    /// Returns the name of the PDU that binds.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Self::Transceiver => "bind_transceiver",
            Self::Transmitter => "bind_transmitter",
            Self::Receiver => "bind_receiver",
        }
    }
}

impl BindMode {
    /// Returns the role of each link. The first link submits, unless it is a receiver.
    pub(crate) fn roles(self) -> &'static [Role] {
        match self {
            Self::Transceiver => &[Role::Transceiver],
            Self::Transmitter => &[Role::Transmitter],
            Self::Receiver => &[Role::Receiver],
            Self::TransmitterAndReceiver => &[Role::Transmitter, Role::Receiver],
        }
    }
}

pub(crate) fn put(out: &mut BytesMut, status: u32, sequence: u32, pdu: Pdu) {
    let command = Command::new(CommandStatus::from(status), sequence, pdu);
    // The codec returns only errors of its sink, and appending to memory can't fail.
    let _ = CommandCodec::new().encode(&command, out);
}

/// Builds the bind PDU of a role.
///
/// # Errors
/// The error names the setting that SMPP can't carry.
pub(crate) fn bind(settings: &Settings, role: Role) -> Result<Pdu, &'static str> {
    if settings.password.len() > PASSWORD_MAX {
        return Ok(long_bind(settings, role));
    }
    let system_id = field(&settings.system_id, "system_id isn't 1 to 15 ASCII characters")?;
    let password = field(&settings.password, "password isn't ASCII characters")?;
    let system_type = field(&settings.system_type, "system_type isn't 0 to 12 ASCII characters")?;
    let range = field(&settings.address_range, "address_range isn't 0 to 40 ASCII characters")?;
    let version = InterfaceVersion::Smpp3_4;
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

/// Builds the bind PDU of a role with a password that is longer than SMPP allows. Some carriers
/// assign such passwords and check every character. The codec has no type for such a bind.
fn long_bind(settings: &Settings, role: Role) -> Pdu {
    let mut body = Vec::new();
    for text in [&settings.system_id, &settings.password, &settings.system_type] {
        body.extend(text.bytes().filter(|byte| *byte != 0));
        body.push(0);
    }
    // Then addr_ton, addr_npi and address_range.
    body.extend([u8::from(InterfaceVersion::Smpp3_4), 0, 0]);
    body.extend(settings.address_range.bytes().filter(|byte| *byte != 0));
    body.push(0);
    let command_id = match role {
        Role::Transceiver => CommandId::BindTransceiver,
        Role::Transmitter => CommandId::BindTransmitter,
        Role::Receiver => CommandId::BindReceiver,
    };
    Pdu::Other { command_id, body: AnyOctetString::from_vec(body) }
}

/// Estimates the size of a submit_sm in octets.
pub(crate) fn size(submit: &Submit) -> usize {
    let payload = submit.message_payload.as_ref().map_or(0, Vec::len);
    let tlvs: usize = submit.tlvs.iter().map(|tlv| 4 + tlv.value.len()).sum();
    128 + submit.short_message.len() + payload + tlvs
}

/// Builds a submit_sm. The error is the status with which an SMSC would refuse it.
pub(crate) fn submit(submit: Submit) -> Result<Pdu, u32> {
    let payload = submit.message_payload.as_ref().map_or(0, Vec::len);
    if payload > MAX_LENGTH - 1024 {
        return Err(status_code::INVALID_MESSAGE_LENGTH);
    }
    let validity = submit.validity_period.as_deref().unwrap_or_default();
    let message = OctetString::from_vec(submit.short_message)
        .map_err(|_| status_code::INVALID_MESSAGE_LENGTH)?;
    let service_type = field(&submit.service_type, status_code::INVALID_SERVICE_TYPE)?;
    let destination = field(&submit.destination.digits, status_code::INVALID_DESTINATION)?;
    let mut builder = SubmitSm::builder()
        .service_type(ServiceType::new(service_type))
        .source_addr_ton(submit.source.ton.into())
        .source_addr_npi(submit.source.npi.into())
        .source_addr(field(&submit.source.digits, status_code::INVALID_SOURCE)?)
        .dest_addr_ton(submit.destination.ton.into())
        .dest_addr_npi(submit.destination.npi.into())
        .destination_addr(destination)
        .esm_class(submit.esm_class.into())
        .validity_period(field(validity, status_code::INVALID_VALIDITY)?)
        .registered_delivery(submit.registered_delivery.into())
        .data_coding(submit.data_coding.into())
        .short_message(message);
    let reference = submit.user_message_reference.map(Into::into);
    let payload = submit.message_payload.map(AnyOctetString::from_vec);
    let tlvs = [
        submit.sar_msg_ref_num.map(Tlv::SarMsgRefNum),
        submit.sar_total_segments.map(Tlv::SarTotalSegments),
        submit.sar_segment_seqnum.map(Tlv::SarSegmentSeqnum),
        reference.map(Tlv::UserMessageReference),
        payload.map(|payload| Tlv::MessagePayload(MessagePayload::new(payload))),
    ];
    let others = submit.tlvs.into_iter().map(|crate::Tlv { tag, value }| Tlv::Other {
        tag: tag.into(),
        value: AnyOctetString::from_vec(value),
    });
    for tlv in tlvs.into_iter().flatten().chain(others) {
        builder = builder.push_tlv(tlv);
    }
    Ok(builder.build().into())
}

/// Builds the response to a deliver_sm or a data_sm. Its message_id is unused (SMPP 3.4, 4.6.2).
pub(crate) fn delivered(data: bool) -> Pdu {
    if data {
        DataSmResp::new(COctetString::empty(), Vec::new()).into()
    } else {
        DeliverSmResp::new(COctetString::empty(), Vec::new()).into()
    }
}

/// Parses a field of a PDU. Returns `error` if SMPP can't carry the text in that field.
fn field<T: FromStr, E>(text: &str, error: E) -> Result<T, E> {
    text.parse().map_err(|_| error)
}
