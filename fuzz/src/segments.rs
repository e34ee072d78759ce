//! The segments of a message, from the text to a carrier and back.

use domain::MessageText;
use domain::inbound::{DefaultAlphabet, PartPosition, ReceivedPart, is_complete, join};
use domain::message::parts::{Concatenation, Part, Segmentation, TooManyParts, parts};
use domain::message::runs::runs;
use domain::message::{self, Encoding, encoding, units_left};

use crate::pieces::option;

/// A segment has at most these octets: 140 on air, of which GSM-7 packs 8 septets into 7.
const SEGMENT_BYTES_MAX: usize = 160;
/// The bit of `esm_class` that announces a header.
const HEADED: u8 = 0x40;
/// The most segments that can be numbered.
const SEGMENTS_MAX: usize = 255;

/// The segments of a text add up to the text, in each way to mark them.
pub fn segments(data: &[u8]) {
    let (options, rest) = option(data);
    let text = String::from_utf8_lossy(rest).into_owned();
    let Ok(text) = MessageText::parse(text, usize::MAX) else {
        return;
    };
    let count = text.segments();
    let text = text.as_str();
    let reference = u16::from_be_bytes([options, options.reverse_bits()]);
    for way in Segmentation::ALL {
        match parts(text, way, reference) {
            Ok(parts) => arrive(text, count, way, &parts),
            Err(TooManyParts) => assert!(count > SEGMENTS_MAX && way != Segmentation::Payload),
        }
    }
    let shown: String = runs(text).iter().map(|run| run.text).collect();
    assert_eq!(shown, text);
    fill(text, count);
    replace(text);
}

fn arrive(text: &str, count: usize, way: Segmentation, parts: &[Part]) {
    if way == Segmentation::Payload {
        assert_eq!(parts.len(), 1);
    } else {
        assert_eq!(parts.len(), count);
        assert!(parts.iter().all(|part| part.bytes.len() <= SEGMENT_BYTES_MAX));
    }
    let mut arrived: Vec<_> = parts.iter().map(received).collect();
    arrived.reverse();
    assert!(is_complete(&arrived));
    assert_eq!(join(&arrived, DefaultAlphabet::Gsm7), text);
}

fn received(part: &Part) -> ReceivedPart {
    let esm_class = if part.concatenation == Concatenation::Header { HEADED } else { 0 };
    let sar = match part.concatenation {
        Concatenation::Sar { reference, total, sequence } => {
            PartPosition::of_sar(reference, total, sequence)
        }
        _ => None,
    };
    ReceivedPart::parse(esm_class, part.data_coding, &part.bytes, sar)
}

/// The units that are left fit, and one more doesn't.
fn fill(text: &str, count: usize) {
    let full = text.to_owned() + &"a".repeat(units_left(text));
    assert_eq!(message::segments(&full), count);
    assert!(message::segments(&(full + "a")) > count);
}

/// A text with replacements is GSM-7 and isn't longer.
fn replace(text: &str) {
    let text = MessageText::from_stored(text.to_owned());
    if let Some(replaced) = text.replaced() {
        assert_eq!(encoding(replaced.as_str()), Encoding::Gsm7);
        assert!(replaced.pages() <= text.pages());
    }
}
