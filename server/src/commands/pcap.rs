//! Writes PDUs to a file that Wireshark reads: each PDU as a TCP segment between two addresses.

use std::collections::BTreeMap;

/// The port on which Wireshark expects SMPP.
const SMPP_PORT: u16 = 2775;
/// The first of the ports that stand for our sides of the connections.
const OUR_PORT: u16 = 40_000;
/// The link type: packets begin with an IP header.
const RAW_IP: u32 = 101;
/// The addresses that stand for us and for the carrier.
const ADDRESSES: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];
const PACKET_MAX: u32 = 65_535;
const HEADERS: usize = 40;
const TCP: u8 = 6;
/// ACK and PSH.
const TCP_FLAGS: u8 = 0x18;

/// A capture file.
pub struct Capture {
    bytes: Vec<u8>,
    /// The port and the sequence numbers of both sides of each connection.
    connections: BTreeMap<String, (u16, [u32; 2])>,
}

impl Capture {
    pub fn new() -> Self {
        let mut bytes = Vec::new();
        bytes.extend(0xA1B2_C3D4_u32.to_be_bytes());
        bytes.extend([2_u16, 4].into_iter().flat_map(u16::to_be_bytes));
        bytes.extend([0, 0, PACKET_MAX, RAW_IP].into_iter().flat_map(u32::to_be_bytes));
        Self { bytes, connections: BTreeMap::new() }
    }

    /// Adds a PDU of a connection. `at_ms` is in Unix milliseconds.
    pub fn add(&mut self, connection: &str, at_ms: i64, sent: bool, pdu: &[u8]) {
        let next = u16::try_from(self.connections.len()).unwrap_or(0);
        let known = self.connections.entry(connection.to_owned());
        let (port, sequences) = known.or_insert((OUR_PORT.saturating_add(next), [1, 1]));
        let (from, to) = if sent { (0, 1) } else { (1, 0) };
        let ports = if sent { [*port, SMPP_PORT] } else { [SMPP_PORT, *port] };
        let length = u16::try_from(HEADERS + pdu.len()).unwrap_or(u16::MAX);
        let at = at_ms.unsigned_abs();
        let time = [at / 1000, at % 1000 * 1000].map(|part| u32::try_from(part).unwrap_or(0));
        let sizes = [u32::from(length); 2];
        self.bytes.extend(time.into_iter().chain(sizes).flat_map(u32::to_be_bytes));
        // The checksums are 0. By default, Wireshark doesn't verify them.
        self.bytes.extend([0x45, 0]);
        self.bytes.extend(length.to_be_bytes());
        self.bytes.extend([0, 0, 0, 0, 64, TCP, 0, 0]);
        self.bytes.extend(ADDRESSES[from].into_iter().chain(ADDRESSES[to]));
        self.bytes.extend(ports.into_iter().flat_map(u16::to_be_bytes));
        let numbers = [sequences[from], sequences[to]];
        self.bytes.extend(numbers.into_iter().flat_map(u32::to_be_bytes));
        self.bytes.extend([0x50, TCP_FLAGS, 0xFF, 0xFF, 0, 0, 0, 0]);
        let pdu = &pdu[..usize::from(length) - HEADERS];
        self.bytes.extend_from_slice(pdu);
        sequences[from] = sequences[from].wrapping_add(u32::try_from(pdu.len()).unwrap_or(0));
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
