//! The `name:value` pairs of a receipt's text, in any case and order.

/// The spellings of the names, longer ones first.
const NAMES: [(&str, &str); 12] = [
    ("submit date", "submit date"),
    ("submit_date", "submit date"),
    ("submitdate", "submit date"),
    ("done date", "done date"),
    ("done_date", "done date"),
    ("donedate", "done date"),
    ("dlvrd", "dlvrd"),
    ("stat", "stat"),
    ("text", "text"),
    ("err", "err"),
    ("sub", "sub"),
    ("id", "id"),
];

/// Characters that may surround a value.
const BLANKS: [char; 8] = [' ', '\0', '\r', '\n', '\t', ',', ';', '|'];

/// The fields of a text. If a name is repeated, its first value counts.
pub(super) struct Fields<'a>(Vec<(&'static str, &'a str)>);

impl<'a> Fields<'a> {
    pub(super) fn read(text: &'a str) -> Self {
        let mut found: Vec<(&'static str, &'a str)> = Vec::new();
        let mut rest = text;
        while let Some((name, value)) = next_name(rest) {
            // The beginning of the message follows `text:`, and may look like fields.
            if name == "text" {
                break;
            }
            let end = [next_start(value), next_unknown(value)].into_iter().flatten().min();
            let end = end.unwrap_or(value.len());
            found.push((name, value[..end].trim_matches(BLANKS)));
            rest = &value[end..];
        }
        Self(found)
    }

    /// Returns the value of a field, or `None` if it is missing or empty.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let field = self.0.iter().find(|(other, _)| *other == name);
        field.map(|(_, value)| *value).filter(|value| !value.is_empty())
    }
}

/// Returns where the fields at the beginning of `text` end, at the latest after the label of the
/// message's text. Fields with other names count only if one of the known fields follows, because
/// they may belong to a text without a label.
pub(super) fn end(text: &str) -> usize {
    let (mut end, mut at) = (0, 0);
    loop {
        at += blanks(&text[at..]);
        let rest = &text[at..];
        if let Some((name, length)) = name_at(rest) {
            at += length;
            if name == "text" {
                return at;
            }
            at += value(&text[at..], name.ends_with("date"));
            end = at;
        } else {
            let word = rest.find(|c: char| !c.is_ascii_alphabetic() && c != '_').unwrap_or(0);
            if word == 0 || !rest[word..].starts_with(':') {
                return end;
            }
            at += word + 1;
            at += value(&text[at..], false);
        }
    }
}

/// Returns the length of the value that `text` begins with, which may be empty. A date may have its
/// time in a second word.
fn value(text: &str, is_date: bool) -> usize {
    let word = |from: usize| {
        let rest = &text[from..];
        let begin = rest.len() - rest.trim_start_matches(' ').len();
        let length = rest[begin..].find(BLANKS).unwrap_or(rest.len() - begin);
        (&rest[begin..begin + length], from + begin + length)
    };
    let (first, end) = word(0);
    // After a space, a word with a colon is another field.
    if first.is_empty() || end > first.len() && first.contains(':') {
        return 0;
    }
    let (second, time_end) = word(end);
    let is_time = second.contains(':') && second.bytes().all(|c| c.is_ascii_digit() || c == b':');
    if is_date && is_time { time_end } else { end }
}

/// Returns the length of the blanks that `text` begins with.
fn blanks(text: &str) -> usize {
    text.len() - text.trim_start_matches(BLANKS).len()
}

/// Returns the name of the first field of `text`, and everything after its colon.
fn next_name(text: &str) -> Option<(&'static str, &str)> {
    let start = if name_at(text).is_some() { 0 } else { next_start(text)? };
    let (name, length) = name_at(&text[start..])?;
    Some((name, &text[start + length..]))
}

/// Returns where the next field begins. A field begins with a name, after a character that isn't
/// part of a word.
fn next_start(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    (1..bytes.len()).find(|at| {
        let begins = bytes[*at].is_ascii_alphabetic() && !bytes[*at - 1].is_ascii_alphanumeric();
        begins && bytes[*at - 1].is_ascii() && name_at(&text[*at..]).is_some()
    })
}

/// Returns where the next field with another name begins. A word and a colon that follow a blank
/// are such a field, so that its value doesn't become part of the value before it. Blanks at the
/// beginning of `text` precede its own value, which may be such a word and colon.
fn next_unknown(text: &str) -> Option<usize> {
    let own = blanks(text);
    let found = text.match_indices(BLANKS).filter(|(at, _)| *at >= own);
    found.map(|(at, blank)| at + blank.len()).find(|begin| {
        let word = text[*begin..].trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == '_');
        word.len() < text[*begin..].len() && word.starts_with(':')
    })
}

/// Returns the field name that `text` begins with, and its length including the colon.
fn name_at(text: &str) -> Option<(&'static str, usize)> {
    NAMES.into_iter().find_map(|(written, name)| {
        let begin = text.get(..written.len())?;
        let rest = &text[written.len()..];
        let spaces = rest.len() - rest.trim_start_matches(' ').len();
        let colon = rest[spaces..].starts_with(':');
        (begin.eq_ignore_ascii_case(written) && colon).then_some((name, written.len() + spaces + 1))
    })
}
