//! Explains what is wrong with the number of a row, judging by its spelling. Most bad files come
//! from spreadsheets and other programs, and each program makes its own typical mistakes.

use super::BulkMode;
use crate::Number;
use crate::printable::is_invisible;

/// A fault in the number of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberFault {
    Missing,
    OnlySpaces,
    CarriageReturn,
    Formula,
    Quoted,
    Semicolon,
    Tab,
    Comma,
    Invisible,
    SpacesAround,
    Scientific,
    Separators,
    Length,
    OtherDigits,
    Words,
    Other,
}

impl NumberFault {
    /// Finds the fault of a text that isn't a valid number.
    pub fn find(text: &str, mode: BulkMode) -> Self {
        let trimmed = text.trim();
        let starts_as_number = trimmed
            .trim_start_matches(['+', '"', '\'', '='])
            .starts_with(|first: char| first.is_ascii_digit());
        let separator = |separator| starts_as_number && text.contains(separator);
        if text.is_empty() || mode == BulkMode::OneToMany && text.starts_with(',') {
            Self::Missing
        } else if trimmed.is_empty() {
            Self::OnlySpaces
        } else if text.contains('\r') {
            Self::CarriageReturn
        } else if separator(';') {
            Self::Semicolon
        } else if separator('\t') {
            Self::Tab
        } else if text.starts_with('=') {
            Self::Formula
        } else if trimmed.starts_with(['"', '\'', '“', '”', '‘', '’']) {
            Self::Quoted
        } else if separator(',') {
            Self::Comma
        } else if text.contains(is_unseen) {
            Self::Invisible
        } else {
            Self::of_one_word(text, trimmed)
        }
    }

    /// Finds the faults that remain once [`Self::find`] has ruled out column separators after a
    /// number, quotes and invisible characters.
    fn of_one_word(text: &str, trimmed: &str) -> Self {
        if text != trimmed && Number::parse(trimmed).is_ok() {
            return Self::SpacesAround;
        }
        let digits = trimmed.strip_prefix('+').unwrap_or(trimmed);
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Self::Length;
        }
        if is_scientific(digits) {
            return Self::Scientific;
        }
        let is_digit = |one: char| one.is_ascii_digit();
        let fits = |one| is_digit(one) || is_digit_separator(one);
        if digits.contains(is_digit) && digits.chars().all(fits) {
            return Self::Separators;
        }
        match trimmed.chars().next() {
            Some(first) if first.is_alphabetic() => Self::Words,
            Some(first) if first.is_numeric() && !first.is_ascii() => Self::OtherDigits,
            _ => Self::Other,
        }
    }

    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Missing => {
                "There is nothing before the first comma; each row starts with its number. Remove \
                 empty columns."
            }
            Self::OnlySpaces => {
                "The row has only spaces where its number should be; remove the line."
            }
            Self::CarriageReturn => {
                "The line ends with a carriage return (CR) alone; save the file with line ends LF \
                 or CRLF."
            }
            Self::Formula => {
                "The number is written as a spreadsheet formula, which starts with =; write its \
                 digits alone."
            }
            Self::Quoted => {
                "The number is in quotes; remove them. Only the message may stand in quotes."
            }
            Self::Semicolon => {
                "A semicolon follows the number; save the file with a comma between number and \
                 message."
            }
            Self::Tab => {
                "A tab follows the number; save the file with a comma between number and message."
            }
            Self::Comma => {
                "A comma follows the number; a file of numbers has one number in each line and \
                 nothing else. Upload numbers with their messages as bulksms."
            }
            Self::Invisible => {
                "The number has an invisible character, such as a zero-width or no-break space; \
                 delete it."
            }
            Self::SpacesAround => "There is a space before or after the number; remove it.",
            Self::Scientific => {
                "A spreadsheet wrote the number with an exponent, such as 7.12E+07, and its \
                 digits may be lost; format the column as text and enter the numbers again."
            }
            Self::Separators => {
                "The number has hyphens, spaces, dots or brackets between its digits; write the \
                 digits alone, with at most a leading +."
            }
            Self::Length => {
                "The number must have 4 to 15 digits: 8 for a local one, with country code for an \
                 international one."
            }
            Self::OtherDigits => "The number has digits other than 0 to 9; write it with 0 to 9.",
            Self::Words => {
                "The row starts with words where its number should be; remove header lines, and \
                 put messages with line breaks in quotes."
            }
            Self::Other => {
                "The row doesn't start with a number: 4 to 15 digits, with at most a leading +."
            }
        }
    }
}

/// Whether a character has no width, or looks like an ordinary space but isn't one.
fn is_unseen(character: char) -> bool {
    is_invisible(character) || (character.is_whitespace() && !character.is_ascii())
}

/// Whether people use a character to group the digits of a number.
fn is_digit_separator(character: char) -> bool {
    character.is_whitespace()
        || matches!(character, '-' | '.' | '/' | '(' | ')' | '\u{2010}'..='\u{2013}' | '\u{2212}')
}

/// Whether the text is a number with an exponent.
fn is_scientific(text: &str) -> bool {
    let Some((digits, exponent)) = text.split_once(['e', 'E']) else {
        return false;
    };
    let are_digits =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    are_digits(whole) && are_digits(fraction) && are_digits(exponent.trim_start_matches(['+', '-']))
}
