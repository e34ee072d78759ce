//! Decodes a URL-encoded form that arrives in pieces and may be larger than memory.

use crate::api::form::{decode, unescape};

/// The most bytes of a name. No parameter's name is that long, however it is escaped.
const NAME_BYTES_MAX: usize = 256;

/// An event in the decoding of a form.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// A parameter begins. The name is `None` if it can't be that of a known parameter.
    Begin(Option<String>),
    /// More of the parameter's value, decoded.
    Data(Vec<u8>),
    End,
}

/// Decodes a form. The parameters don't depend on how the form is cut into pieces.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Bytes that can't be decoded yet: an incomplete name, or the possible start of an escape.
    pending: Vec<u8>,
    in_value: bool,
}

impl Decoder {
    /// Decodes the next piece.
    pub fn read(&mut self, piece: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        let mut parts = piece.split(|&byte| byte == b'&');
        self.read_pair(parts.next().unwrap_or_default(), &mut events);
        for part in parts {
            self.end_pair(&mut events);
            self.read_pair(part, &mut events);
        }
        events
    }

    /// Ends the form.
    pub fn finish(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        self.end_pair(&mut events);
        events
    }

    /// Decodes more of a name-value pair.
    fn read_pair(&mut self, mut text: &[u8], events: &mut Vec<Event>) {
        if !self.in_value {
            let end = text.iter().position(|&byte| byte == b'=');
            let name = &text[..end.unwrap_or(text.len())];
            // A longer name can't be that of a known parameter, so the rest isn't kept.
            let room = NAME_BYTES_MAX + 1 - self.pending.len();
            self.pending.extend(&name[..name.len().min(room)]);
            let Some(end) = end else {
                return;
            };
            self.begin_value(events);
            text = &text[end + 1..];
        }
        self.pending.extend(text);
        let begun = self.pending.split_off(self.pending.len() - begun_escape(&self.pending));
        let text = std::mem::replace(&mut self.pending, begun);
        if !text.is_empty() {
            events.push(Event::Data(unescape(&text)));
        }
    }

    fn begin_value(&mut self, events: &mut Vec<Event>) {
        let name = Some(std::mem::take(&mut self.pending));
        let name = name.filter(|name| name.len() <= NAME_BYTES_MAX);
        events.push(Event::Begin(name.and_then(|name| decode(&name, true))));
        self.in_value = true;
    }

    fn end_pair(&mut self, events: &mut Vec<Event>) {
        if !self.in_value {
            if self.pending.is_empty() {
                return;
            }
            self.begin_value(events);
        }
        // An incomplete escape is literal text.
        if !self.pending.is_empty() {
            events.push(Event::Data(std::mem::take(&mut self.pending)));
        }
        events.push(Event::End);
        self.in_value = false;
    }
}

/// Returns the number of bytes at the end of a text that may be the start of an escape.
fn begun_escape(text: &[u8]) -> usize {
    match text {
        [.., b'%'] => 1,
        [.., b'%', digit] if digit.is_ascii_hexdigit() => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::form;

    /// Returns the pairs that the decoder finds in the pieces.
    fn pairs<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<(Option<String>, Option<String>)> {
        let mut decoder = Decoder::default();
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
