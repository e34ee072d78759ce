//! Gives the crate `fuzz` access to the private parsers.

use bytes::BytesMut;
use rusmpp::CommandId;

use crate::{Delivery, Submit, encode, frames};

/// A PDU that was received.
#[derive(Debug, PartialEq, Eq)]
pub struct ReadPdu {
    /// All octets, with the header.
    pub octets: Vec<u8>,
    /// The message ID of a response.
    pub message_id: Option<String>,
    /// The delivery, if the PDU carries a readable one.
    pub delivery: Option<Delivery>,
}

/// Takes the next PDU if it was received in full.
///
/// # Errors Returns the length of the PDU if it is out of bounds.
pub fn next(incoming: &mut BytesMut) -> Result<Option<ReadPdu>, u32> {
    let frame = frames::next(incoming).map_err(|frames::BadLength(length)| length)?;
    Ok(frame.map(|frame| ReadPdu {
        octets: frame.octets(),
        message_id: frames::message_id(&frame.body),
        delivery: match frame.command {
            // The body of a submit_sm has the fields of a deliver_sm.
            CommandId::DeliverSm | CommandId::SubmitSm => frames::deliver_sm(frame.body),
            CommandId::DataSm => frames::data_sm(frame.body),
            _ => None,
        },
    }))
}

/// Returns the octets of a submit.
///
/// # Errors
/// Returns the status with which an SMSC would refuse it.
pub fn write(submit: Submit, sequence: u32) -> Result<BytesMut, u32> {
    let mut octets = BytesMut::new();
    encode::put(&mut octets, 0, sequence, encode::submit(submit)?);
    Ok(octets)
}
