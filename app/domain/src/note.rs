//! Notes of staff on accounts.

/// The most characters of a note.
pub const NOTE_CHARS_MAX: usize = 2000;

/// The text can't be a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidNote;

/// The text of a note, as it is stored: without space around it.
///
/// # Errors
/// When there is none, it is too long, or it has control characters besides line ends.
pub fn parse_note(text: &str) -> Result<String, InvalidNote> {
    let text = text.trim().replace("\r\n", "\n");
    let readable = text.chars().all(|c| c == '\n' || !c.is_control());
    if text.is_empty() || !readable || text.chars().count() > NOTE_CHARS_MAX {
        return Err(InvalidNote);
    }
    Ok(text)
}
