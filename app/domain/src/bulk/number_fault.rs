//! Finds the fault in the number of a row from the way it is written. Most bad files come from
//! spreadsheets and other programs, and each program makes its own typical mistakes.

use super::BulkMode;
use super::foreign_file::{ForeignFile, has_old_line_end};
use crate::Number;
use crate::printable::is_invisible;

/// A fault in the number of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberFault {
    /// A fault of the whole file.
    Foreign(ForeignFile),
    Missing,
    OnlySpaces,
    CarriageReturn,
    Formula,
    Quoted,
    Comma,
    Invisible,
    SpacesAround,
    Separators,
    Length,
    OtherDigits,
    Words,
    Other,
}

/// The quotation marks that programs and people write.
const QUOTES: [char; 6] = ['"', '\'', '“', '”', '‘', '’'];

impl NumberFault {
    /// Finds the fault of a text that isn't a valid number. `line` starts with the text, and is the
    /// file's first line if `is_first`.
    pub fn find(text: &str, line: &str, mode: BulkMode, is_first: bool) -> Self {
        let trimmed = text.trim();
        let bare = trimmed.trim_start_matches(QUOTES);
        let starts_as_number = bare.trim_start_matches(['+', '=']).trim_start_matches(QUOTES);
        let starts_as_number = starts_as_number.starts_with(|first: char| first.is_ascii_digit());
        let separator = |separator| starts_as_number && text.contains(separator);
        if has_old_line_end(line.as_bytes()) {
            Self::Foreign(ForeignFile::OldMac)
        } else if text.is_empty() || mode == BulkMode::OneToMany && text.starts_with(',') {
            Self::Missing
        } else if trimmed.is_empty() {
            Self::OnlySpaces
        } else if is_first && bare.starts_with(char::is_alphabetic) {
            Self::Foreign(ForeignFile::Header)
        } else if text.contains('\r') {
            Self::CarriageReturn
        } else if starts_as_number && starts_with_exponent(line) {
            Self::Foreign(ForeignFile::Exponents)
        } else if separator(';') {
            Self::Foreign(ForeignFile::Semicolons)
        } else if separator('\t') {
            Self::Foreign(ForeignFile::Tabs)
        } else if text.starts_with('=') {
            Self::Formula
        } else if trimmed.starts_with(QUOTES) {
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
            Self::Foreign(foreign) => foreign.sentence(),
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
            Self::Comma => {
                "A comma follows the number; a file of numbers has one number in each line and \
                 nothing else. Upload numbers with their messages as bulksms."
            }
            Self::Invisible => {
                "The number has an invisible character, such as a zero-width or no-break space; \
                 delete it."
            }
            Self::SpacesAround => "There is a space before or after the number; remove it.",
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

/// Whether a line starts with a number with an exponent, such as `5.7E+07` or, in half of Europe,
/// `5,7E+07`.
fn starts_with_exponent(line: &str) -> bool {
    let cell = line.split([';', '\t']).next().unwrap_or(line);
    let mut ends = cell.match_indices(',').map(|(at, _)| at).take(2).chain([cell.len()]);
    let is_around = |c: char| c.is_whitespace() || QUOTES.contains(&c);
    ends.any(|end| is_scientific(cell[..end].trim_matches(is_around)))
}

/// Whether the text is a number with an exponent. Spreadsheets write at most three digits before
/// the decimal point.
fn is_scientific(text: &str) -> bool {
    let Some((digits, exponent)) = text.split_once(['e', 'E']) else {
        return false;
    };
    let are_digits =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = digits.split_once(['.', ',']).unwrap_or((digits, "0"));
    let is_mantissa = whole.len() <= 3 && are_digits(whole) && are_digits(fraction);
    is_mantissa && are_digits(exponent.trim_start_matches(['+', '-']))
}
