//! URL decoding (WHATWG URL §5.1). Unlike in the standard, invalid UTF-8 is an error and isn't
//! replaced.

use percent_encoding::percent_decode;

/// Percent-decodes a text. `plus_is_space` is true for forms and queries. A `%` that doesn't start
/// an escape is literal, as in browsers. Returns `None` if the result isn't UTF-8.
pub fn decode(text: &[u8], plus_is_space: bool) -> Option<String> {
    let bytes = if plus_is_space { unescape(text) } else { percent_decode(text).collect() };
    String::from_utf8(bytes).ok()
}

/// Percent-decodes a part of a form, in which `+` is a space.
pub fn unescape(text: &[u8]) -> Vec<u8> {
    let is_space = |&byte: &u8| if byte == b'+' { b' ' } else { byte };
    // No escape contains a space, so the replacement can come first.
    let spaced: Vec<u8> = text.iter().map(is_space).collect();
    percent_decode(&spaced).collect()
}

/// Returns the name-value pairs of a query or form. A name or value is `None` if it isn't UTF-8.
pub fn pairs(text: &[u8]) -> impl Iterator<Item = (Option<String>, Option<String>)> {
    let decoded = |bytes| String::from_utf8(bytes).ok();
    raw_pairs(text).map(move |(name, value)| (decoded(name), decoded(value)))
}

/// Returns the name-value pairs of a query or form, in any encoding.
pub fn raw_pairs(text: &[u8]) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    text.split(|&byte| byte == b'&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = match pair.iter().position(|&byte| byte == b'=') {
            Some(at) => (&pair[..at], &pair[at + 1..]),
            None => (pair, &b""[..]),
        };
        (unescape(name), unescape(value))
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
        assert_eq!(found, [(some("a"), some("1=2")), (some("b"), some("")), (some(""), some("c"))]);
    }
}
