//! URL encoding (WHATWG URL §5.1), with the difference between a wrong encoding and a strange text
//! kept.

/// Percent-decodes; in forms and queries `+` is a space. A `%` that starts no escape stands for
/// itself, as browsers have it. `None` when the bytes are no UTF-8.
pub fn decode(text: &[u8], plus_is_space: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut unescape = Unescape::new(plus_is_space);
    for &byte in text {
        unescape.push(byte, &mut bytes);
    }
    unescape.finish(&mut bytes);
    String::from_utf8(bytes).ok()
}

/// Percent-decodes byte by byte.
#[derive(Debug)]
pub struct Unescape {
    plus_is_space: bool,
    pending: Pending,
}

/// What came of an escape so far.
#[derive(Clone, Copy, Debug)]
enum Pending {
    Nothing,
    Percent,
    /// The percent sign and this digit.
    High(u8),
}

impl Unescape {
    pub const fn new(plus_is_space: bool) -> Self {
        Self {
            plus_is_space,
            pending: Pending::Nothing,
        }
    }

    /// Takes a byte and appends what is known of the decoded text.
    pub fn push(&mut self, byte: u8, decoded: &mut Vec<u8>) {
        match (self.pending, hex(byte)) {
            (Pending::Percent, Some(_)) => {
                self.pending = Pending::High(byte);
                return;
            }
            (Pending::High(high), Some(low)) => {
                self.pending = Pending::Nothing;
                decoded.push(hex(high).unwrap_or_default() << 4 | low);
                return;
            }
            _ => self.finish(decoded),
        }
        match byte {
            b'%' => self.pending = Pending::Percent,
            b'+' if self.plus_is_space => decoded.push(b' '),
            _ => decoded.push(byte),
        }
    }

    /// What began as an escape and is none stands for itself.
    pub fn finish(&mut self, decoded: &mut Vec<u8>) {
        match std::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Nothing => {}
            Pending::Percent => decoded.push(b'%'),
            Pending::High(high) => decoded.extend([b'%', high]),
        }
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

/// The names and values of a query or a form. Either is `None` when it isn't UTF-8.
pub fn pairs(text: &[u8]) -> impl Iterator<Item = (Option<String>, Option<String>)> {
    text.split(|&byte| byte == b'&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = match pair.iter().position(|&byte| byte == b'=') {
                Some(at) => (&pair[..at], &pair[at + 1..]),
                None => (pair, &b""[..]),
            };
            (decode(name, true), decode(value, true))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_follows_browsers() {
        for (text, decoded) in [
            ("a+b", Some("a b")),
            ("a%2Bb", Some("a+b")),
            ("100%", Some("100%")),
            ("100%zz", Some("100%zz")),
            ("%%41%4", Some("%A%4")),
            ("%4%41%4+", Some("%4A%4 ")),
            ("%e2%82%AC", Some("€")),
            ("€", Some("€")),
            ("%00", Some("\0")),
            ("%ff", None),
            ("%ED%A0%80", None),
            ("%C0%80", None),
        ] {
            assert_eq!(decode(text.as_bytes(), true).as_deref(), decoded, "{text}");
        }
        assert_eq!(decode(b"a+b", false).as_deref(), Some("a+b"));
    }

    #[test]
    fn pairs_split_at_the_first_equals_sign() {
        let found: Vec<_> = pairs(b"a=1=2&&b&=c").collect();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            found,
            [
                (some("a"), some("1=2")),
                (some("b"), some("")),
                (some(""), some("c"))
            ]
        );
    }
}
