//! As much of SMPP 3.4 as the sink needs.

pub const BIND_RECEIVER: u32 = 0x01;
pub const BIND_TRANSMITTER: u32 = 0x02;
pub const BIND_TRANSCEIVER: u32 = 0x09;
pub const SUBMIT_SM: u32 = 0x04;
pub const DELIVER_SM: u32 = 0x05;
pub const DELIVER_SM_RESP: u32 = DELIVER_SM | ANSWER;
pub const UNBIND: u32 = 0x06;
pub const ENQUIRE_LINK: u32 = 0x15;
/// The bit that makes a command its answer.
pub const ANSWER: u32 = 0x8000_0000;

/// Length, command, status, sequence number.
const HEAD: usize = 16;

/// A whole PDU.
pub struct Frame<'a>(&'a [u8]);

/// Source and destination with type and plan, as they stand in a `submit_sm`.
pub struct Addresses {
    source: Vec<u8>,
    destination: Vec<u8>,
}

impl<'a> Frame<'a> {
    /// The first whole one.
    pub fn first(bytes: &'a [u8]) -> Option<Self> {
        let length = number(bytes.get(..4)?) as usize;
        bytes.get(..length).map(Self)
    }

    pub fn length(&self) -> usize {
        self.0.len()
    }

    pub fn command(&self) -> u32 {
        number(&self.0[4..8])
    }

    /// Writes its answer with status 0.
    pub fn answer(&self, out: &mut Vec<u8>, body: &[u8]) {
        write_head(
            out,
            self.command() | ANSWER,
            number(&self.0[12..16]),
            body.len(),
        );
        out.extend_from_slice(body);
    }

    /// Of a `submit_sm`: its addresses, and whether a receipt is wanted.
    pub fn submit_sm(&self) -> (Addresses, bool) {
        let mut rest = &self.0[HEAD..];
        let mut text = |before: usize| {
            let end = rest[before..].iter().position(|byte| *byte == 0).unwrap();
            let (taken, left) = rest.split_at(before + end + 1);
            rest = left;
            taken
        };
        // Service type; addresses after their type and plan.
        text(0);
        let addresses = Addresses {
            source: text(2).to_vec(),
            destination: text(2).to_vec(),
        };
        // Times after class, protocol and priority.
        text(3);
        text(0);
        (addresses, rest[0] & 1 == 1)
    }
}

/// Writes a `deliver_sm` that says that a message was delivered: as text (SMPP 3.4, appendix B) and
/// in the optional parameters, as most centres do.
pub fn write_receipt(out: &mut Vec<u8>, sequence: u32, id: u64, addresses: &Addresses) {
    let id = id.to_string();
    let text = format!(
        "id:{id} sub:001 dlvrd:001 submit date:2601010000 done date:2601010000 stat:DELIVRD \
         err:000 text:"
    );
    let mut body = vec![0];
    // From whom the message went to.
    body.extend_from_slice(&addresses.destination);
    body.extend_from_slice(&addresses.source);
    // Class 4 is a receipt; then protocol, priority, two times, four more that say nothing.
    body.extend_from_slice(&[4, 0, 0, 0, 0, 0, 0, 0, 0]);
    body.push(u8::try_from(text.len()).unwrap());
    body.extend_from_slice(text.as_bytes());
    // receipted_message_id, message_state.
    body.extend_from_slice(&[0x00, 0x1E, 0, u8::try_from(id.len() + 1).unwrap()]);
    body.extend_from_slice(id.as_bytes());
    body.extend_from_slice(&[0, 0x04, 0x27, 0, 1, 2]);
    write_head(out, DELIVER_SM, sequence, body.len());
    out.extend_from_slice(&body);
}

/// So many of the same `submit_sm`, for a client that answers its own questions.
pub fn submits(count: u32) -> Vec<u8> {
    let mut out = Vec::new();
    for sequence in 1..=count {
        let mut body = b"\0\x05\x00Heliograph\0\x01\x0126657000001\0".to_vec();
        body.extend_from_slice(&[0; 9]);
        body.extend_from_slice(b"\x0bHello there");
        write_head(&mut out, SUBMIT_SM, sequence, body.len());
        out.extend_from_slice(&body);
    }
    out
}

fn write_head(out: &mut Vec<u8>, command: u32, sequence: u32, body: usize) {
    let length = u32::try_from(HEAD + body).unwrap();
    for field in [length, command, 0, sequence] {
        out.extend_from_slice(&field.to_be_bytes());
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u32::from(*byte))
}
