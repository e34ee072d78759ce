//! A URL-encoded form that comes in pieces and needn't fit into memory.

use crate::api::form::Unescape;

/// Bytes of a name; no parameter has one so long.
const NAME_BYTES_MAX: usize = 256;

/// What was found in a piece.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// A parameter begins. `None` for a name that can't be one of ours.
    Begin(Option<String>),
    /// More of its value, decoded.
    Data(Vec<u8>),
    End,
}

/// Takes a form apart. However it is cut into pieces, the parameters are the same.
#[derive(Debug)]
pub struct Decoder {
    unescape: Unescape,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// Before a pair, of which nothing came yet.
    Between,
    Name(Vec<u8>),
    Value,
}

impl Decoder {
    pub const fn new() -> Self {
        Self {
            unescape: Unescape::new(true),
            place: Place::Between,
        }
    }

    /// Reads on.
    pub fn read(&mut self, piece: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        let mut value = Vec::new();
        for &byte in piece {
            match (&mut self.place, byte) {
                (Place::Between, b'&') => {}
                (_, b'&') => self.end_pair(&mut value, &mut events),
                (Place::Between | Place::Name(_), b'=') => self.begin_value(&mut events),
                (Place::Between, _) => {
                    let mut name = Vec::new();
                    self.unescape.push(byte, &mut name);
                    self.place = Place::Name(name);
                }
                (Place::Name(name), _) => {
                    // What is longer is known to be none of ours by now.
                    if name.len() <= NAME_BYTES_MAX {
                        self.unescape.push(byte, name);
                    }
                }
                (Place::Value, _) => self.unescape.push(byte, &mut value),
            }
        }
        if !value.is_empty() {
            events.push(Event::Data(value));
        }
        events
    }

    /// Ends the form.
    pub fn finish(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        if !matches!(self.place, Place::Between) {
            self.end_pair(&mut Vec::new(), &mut events);
        }
        events
    }

    fn begin_value(&mut self, events: &mut Vec<Event>) {
        let mut name = match std::mem::replace(&mut self.place, Place::Value) {
            Place::Name(name) => name,
            Place::Between | Place::Value => Vec::new(),
        };
        self.unescape.finish(&mut name);
        let name = Some(name).filter(|name| name.len() <= NAME_BYTES_MAX);
        events.push(Event::Begin(
            name.and_then(|name| String::from_utf8(name).ok()),
        ));
    }

    fn end_pair(&mut self, value: &mut Vec<u8>, events: &mut Vec<Event>) {
        if !matches!(self.place, Place::Value) {
            self.begin_value(events);
        }
        self.unescape.finish(value);
        if !value.is_empty() {
            events.push(Event::Data(std::mem::take(value)));
        }
        events.push(Event::End);
        self.place = Place::Between;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::form;

    /// The pairs that a form was taken apart into.
    fn pairs<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<(Option<String>, Option<String>)> {
        let mut decoder = Decoder::new();
        let mut events: Vec<Event> = pieces.flat_map(|piece| decoder.read(piece)).collect();
        events.extend(decoder.finish());
        let mut pairs = Vec::new();
        let mut open = None;
        for event in events {
            match event {
                Event::Begin(name) => open = Some((name, Vec::new())),
                Event::Data(data) => open.as_mut().unwrap().1.extend(data),
                Event::End => {
                    let (name, value) = open.take().unwrap();
                    pairs.push((name, String::from_utf8(value).ok()));
                }
            }
        }
        assert!(open.is_none());
        pairs
    }

    #[test]
    fn pieces_are_read_as_the_whole_is() {
        for text in [
            "a=1=2&&b&=c&",
            "a",
            "",
            "&",
            "=",
            "a=%E2%82%AC&%6Eumber=+1%2B2&x=%",
            "a=%&b=%4&c=%%41&%=%4",
            "a=100%zz%4",
            "%ff=%ff&a=\u{20ac}",
        ] {
            let whole: Vec<_> = form::pairs(text.as_bytes()).collect();
            assert_eq!(pairs(std::iter::once(text.as_bytes())), whole, "{text}");
            for size in 1..5 {
                assert_eq!(pairs(text.as_bytes().chunks(size)), whole, "{text}");
            }
        }
    }

    #[test]
    fn a_name_without_end_is_no_name_and_takes_no_room() {
        let text = "a".repeat(1_000_000) + "=1&b=2";
        let found = pairs(text.as_bytes().chunks(1000));
        assert_eq!(found[0].0, None);
        assert_eq!(found[1], (Some("b".into()), Some("2".into())));
    }
}
