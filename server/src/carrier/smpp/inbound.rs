//! Reads a message from a handset, or a part of one, from a delivery.

use ::smpp::Delivery;
use domain::{DefaultAlphabet, PartPosition};
use service::{InboundContent, InboundDelivery};

/// Returns the message in a delivery that isn't a receipt.
pub(super) fn read(delivery: Delivery, alphabet: DefaultAlphabet) -> InboundDelivery {
    let sar = || {
        PartPosition::of_sar(
            delivery.sar_msg_ref_num?,
            delivery.sar_total_segments?,
            delivery.sar_segment_seqnum?,
        )
    };
    let sar = sar();
    InboundDelivery {
        number: delivery.source,
        recipient: delivery.destination,
        content: InboundContent::Octets {
            esm_class: delivery.esm_class,
            data_coding: delivery.data_coding,
            payload: delivery.text,
            sar,
            alphabet,
        },
    }
}
