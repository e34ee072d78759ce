//! The part of SMPP 3.4 that the sink needs.

pub const BIND_RECEIVER: u32 = 0x01;
pub const BIND_TRANSMITTER: u32 = 0x02;
pub const BIND_TRANSCEIVER: u32 = 0x09;
pub const SUBMIT_SM: u32 = 0x04;
pub const DELIVER_SM: u32 = 0x05;
pub const DELIVER_SM_RESP: u32 = DELIVER_SM | ANSWER;
pub const UNBIND: u32 = 0x06;
pub const ENQUIRE_LINK: u32 = 0x15;
/// The bit that turns a command into its response.
pub const ANSWER: u32 = 0x8000_0000;

/// The length of the header: command length, command ID, status, sequence number.
const HEAD: usize = 16;

/// A complete PDU.
pub struct Frame<'a>(&'a [u8]);

/// Source and destination as bytes of a `submit_sm`, each with its type of number and numbering
/// plan.
pub struct Addresses {
    source: Vec<u8>,
    destination: Vec<u8>,
}

impl<'a> Frame<'a> {
    /// Returns the first PDU, if it is complete.
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

    /// Writes the response with status 0.
    pub fn answer(&self, out: &mut Vec<u8>, body: &[u8]) {
        write_head(out, self.command() | ANSWER, number(&self.0[12..16]), body.len());
        out.extend_from_slice(body);
    }

    /// Writes the response with this status and without a body.
    pub fn refuse(&self, out: &mut Vec<u8>, status: u32) {
        let start = out.len();
        self.answer(out, b"");
        out[start + 8..start + 12].copy_from_slice(&status.to_be_bytes());
    }

    /// Returns the addresses of a `submit_sm`, and whether it requests a receipt.
    pub fn submit_sm(&self) -> (Addresses, bool) {
        let mut rest = &self.0[HEAD..];
        let mut text = |before: usize| {
            let end = rest[before..].iter().position(|byte| *byte == 0).unwrap();
            let (taken, left) = rest.split_at(before + end + 1);
            rest = left;
            taken
        };
        // Skips service_type. Type and plan come before each address.
        text(0);
        let addresses = Addresses { source: text(2).to_vec(), destination: text(2).to_vec() };
        // Skips esm_class, protocol_id and priority_flag with the first time, then the second time.
        text(3);
        text(0);
        (addresses, rest[0] & 1 == 1)
    }
}

/// Writes a `deliver_sm` that reports a message as delivered, or as undeliverable. It does so both
/// as text (SMPP 3.4, appendix B) and in optional parameters, as most SMSCs do.
pub fn write_receipt(
    out: &mut Vec<u8>,
    sequence: u32,
    id: u64,
    addresses: &Addresses,
    delivered: bool,
) {
    let id = id.to_string();
    // The second one is the value of message_state.
    let (stat, state) = if delivered { ("DELIVRD", 2) } else { ("UNDELIV", 5) };
    let text = format!(
        "id:{id} sub:001 dlvrd:001 submit date:2601010000 done date:2601010000 stat:{stat} \
         err:000 text:"
    );
    let mut body = vec![0];
    // The receipt comes from the number that the message went to.
    body.extend_from_slice(&addresses.destination);
    body.extend_from_slice(&addresses.source);
    // esm_class 4 is a receipt. The zeros are protocol_id, priority_flag, two empty times and four
    // more fields.
    body.extend_from_slice(&[4, 0, 0, 0, 0, 0, 0, 0, 0]);
    body.push(u8::try_from(text.len()).unwrap());
    body.extend_from_slice(text.as_bytes());
    // The optional parameters receipted_message_id and message_state.
    body.extend_from_slice(&[0x00, 0x1E, 0, u8::try_from(id.len() + 1).unwrap()]);
    body.extend_from_slice(id.as_bytes());
    body.extend_from_slice(&[0, 0x04, 0x27, 0, 1, state]);
    write_head(out, DELIVER_SM, sequence, body.len());
    out.extend_from_slice(&body);
}

/// Writes a `deliver_sm` with a message from a handset. The text contains the sequence number.
pub fn write_message(out: &mut Vec<u8>, sequence: u32, recipient: &str) {
    let text = format!("Message {sequence} from a handset");
    let mut body = format!("\0\x01\x0126657000001\0\x01\x01{recipient}\0").into_bytes();
    body.extend_from_slice(&[0; 9]);
    body.push(u8::try_from(text.len()).unwrap());
    body.extend_from_slice(text.as_bytes());
    write_head(out, DELIVER_SM, sequence, body.len());
    out.extend_from_slice(&body);
}

/// Returns `count` equal `submit_sm` PDUs with the sequence numbers 1 to `count`.
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
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}
