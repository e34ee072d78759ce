//! Notes that staff write about accounts.

/// The maximum number of characters in a note.
pub const NOTE_CHARS_MAX: usize = 2000;

/// The text isn't a valid note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidNote;

/// Returns the text of a note as it is stored: trimmed, with LF line ends.
///
/// # Errors
/// Returns an error if the text is empty, too long, or has control characters other than line ends.
pub fn parse_note(text: &str) -> Result<String, InvalidNote> {
    let text = text.trim().replace("\r\n", "\n");
    let readable = text.chars().all(|c| c == '\n' || !c.is_control());
    if text.is_empty() || !readable || text.chars().count() > NOTE_CHARS_MAX {
        return Err(InvalidNote);
    }
    Ok(text)
}
