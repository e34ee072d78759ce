//! The first lines of a file, for the person who uploaded it.

use super::foreign_file::{ForeignFile, windows_1252};
use crate::printable::printable;

/// The number of leading bytes that [`first_lines`] needs.
pub const FIRST_BYTES: usize = 4096;
const LINES: usize = 5;
/// The number of characters shown of a line.
const CHARS: usize = 100;

/// Returns the first lines of a file that starts with `head`, as they are read. The ASCII control
/// characters are shown by their symbols, so that tabs and carriage returns can be seen. `found`
/// are the peculiarities of the file. Empty for a file that isn't text.
pub fn first_lines(head: &[u8], found: &[ForeignFile]) -> Vec<String> {
    if found.iter().any(|foreign| foreign.is_binary()) {
        return Vec::new();
    }
    let text = decoded(head, found);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let mut shown: Vec<_> = lines.take(LINES).map(shown).collect();
    while shown.last().is_some_and(String::is_empty) {
        shown.pop();
    }
    shown
}

fn decoded(head: &[u8], found: &[ForeignFile]) -> String {
    if found.contains(&ForeignFile::Utf16) {
        let is_big = matches!(head, [0xfe, 0xff, ..] | [0, ..]);
        let unit = |pair: &[u8]| {
            let pair = [pair[0], pair[1]];
            if is_big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
        };
        let units: Vec<u16> = head.chunks_exact(2).map(unit).collect();
        String::from_utf16_lossy(&units)
    } else if found.contains(&ForeignFile::Windows1252) {
        head.iter().map(|byte| windows_1252(*byte)).collect()
    } else {
        String::from_utf8_lossy(head).into_owned()
    }
}

fn shown(line: &str) -> String {
    let mut chars = line.chars().map(|c| match c {
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(c),
        '\u{7f}' => '\u{2421}',
        _ => c,
    });
    let start: String = chars.by_ref().take(CHARS).collect();
    let cut = if chars.next().is_some() { "…" } else { "" };
    printable(&start).into_owned() + cut
}
