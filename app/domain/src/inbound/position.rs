//! The position of a part in a long message.

/// The position of a part in a long message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PartPosition {
    /// Equal for all parts of a message. An 8-bit reference, a 16-bit reference and a reference of
    /// the SAR parameters are never equal: bits 16 and 17 are the kind.
    pub reference: u32,
    pub total: u8,
    /// The number of this part, from 1 to `total`.
    pub sequence: u8,
}

impl PartPosition {
    pub(super) fn of_8_bit(reference: u8, total: u8, sequence: u8) -> Option<Self> {
        Self::of_kind(0, reference.into(), total, sequence)
    }

    pub(super) fn of_16_bit(reference: u16, total: u8, sequence: u8) -> Option<Self> {
        Self::of_kind(1, reference, total, sequence)
    }

    /// Returns the position that SMPP's parameters `sar_msg_ref_num`, `sar_total_segments` and
    /// `sar_segment_seqnum` state. Returns `None` if they state the only part of a message, or a
    /// part that can't exist.
    pub fn of_sar(reference: u16, total: u8, sequence: u8) -> Option<Self> {
        Self::of_kind(2, reference, total, sequence)
    }

    fn of_kind(kind: u32, reference: u16, total: u8, sequence: u8) -> Option<Self> {
        let exists = total > 1 && (1..=total).contains(&sequence);
        let reference = (kind << 16) | u32::from(reference);
        exists.then_some(Self { reference, total, sequence })
    }
}
