//! Texts with placeholders, like `to={number}`.

use std::borrow::Cow;
use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All ASCII characters except those that need no encoding anywhere in a URL (RFC 3986 §2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The value that a placeholder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholder {
    Number,
    Sender,
    Message,
    Transid,
    /// The application's reference.
    Application,
    /// Seconds until the message expires.
    Validity,
    /// The carrier's code for the message's alphabet.
    Alphabet,
    /// Where the carrier sends its receipts. It contains a secret.
    ReceiptUrl,
    /// The carrier's password. With this placeholder, the password can be in a file instead of in
    /// the template.
    Password,
}

/// The placeholders' names, which templates have in braces.
const NAMES: [(&str, Placeholder); 9] = [
    ("number", Placeholder::Number),
    ("sender", Placeholder::Sender),
    ("message", Placeholder::Message),
    ("transid", Placeholder::Transid),
    ("application", Placeholder::Application),
    ("validity_s", Placeholder::Validity),
    ("alphabet", Placeholder::Alphabet),
    ("receipt_url", Placeholder::ReceiptUrl),
    ("password", Placeholder::Password),
];

/// How values are escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// For a URL or a form.
    Percent,
    /// For a JSON string.
    Json,
    /// Not at all.
    Plain,
}

#[derive(Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Value(Placeholder),
}

/// A text with placeholders. The inserted values are never searched for placeholders.
#[derive(Clone, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

impl Template {
    /// Parses a text. A word of lower-case letters in braces is a placeholder; any other brace is
    /// plain text. Returns `None` if the word is unknown.
    pub fn parse(text: &str) -> Option<Self> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            plain.push_str(before);
            let word = from[1..].split_once('}').map(|(word, _)| word);
            let is_word = |word: &&str| {
                !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
            };
            if let Some(word) = word.filter(is_word) {
                let (_, known) = NAMES.into_iter().find(|(known, _)| *known == word)?;
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                pieces.push(Piece::Value(known));
                rest = &from[word.len() + 2..];
            } else {
                plain.push('{');
                rest = &from[1..];
            }
        }
        plain.push_str(rest);
        pieces.push(Piece::Text(plain));
        Some(Self(pieces))
    }

    pub fn has(&self, placeholder: Placeholder) -> bool {
        self.0.contains(&Piece::Value(placeholder))
    }

    /// Returns the text with the values inserted. A `+` before a number is escaped like the number,
    /// because it would be a space in a form.
    pub fn fill<'a>(&self, value: impl Fn(Placeholder) -> Cow<'a, str>, escape: Escape) -> String {
        let mut filled = String::new();
        for (at, piece) in self.0.iter().enumerate() {
            match piece {
                Piece::Text(text) => {
                    let before_number =
                        self.0.get(at + 1) == Some(&Piece::Value(Placeholder::Number));
                    let (text, plus) = match text.strip_suffix('+').filter(|_| before_number) {
                        Some(text) => (text, "+"),
                        None => (text.as_str(), ""),
                    };
                    filled.push_str(text);
                    escape.write(plus, &mut filled);
                }
                Piece::Value(placeholder) => escape.write(&value(*placeholder), &mut filled),
            }
        }
        filled
    }
}

impl Escape {
    fn write(self, value: &str, out: &mut String) {
        match self {
            Self::Percent => out.extend(utf8_percent_encode(value, ENCODED)),
            Self::Json => {
                let quoted = serde_json::Value::from(value).to_string();
                // The template already contains the quotes.
                out.push_str(&quoted[1..quoted.len() - 1]);
            }
            Self::Plain => out.push_str(value),
        }
    }
}

impl fmt::Debug for Template {
    /// Omits the text, which may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Template")
    }
}
