//! Recognises files that other programs wrote in their own way. A file that isn't text is
//! recognised by its first bytes: without this check, every line would be a separate bad row, and
//! no error would say what the file is. The others are recognised by their bad rows.

use std::str;

use serde::{Deserialize, Serialize};

use crate::{Number, Reason};

/// The number of leading bytes that identify a file that isn't text.
pub const HEAD_BYTES: usize = 4;

/// A peculiarity of a file, or of the program that wrote it. The API's errors and the page that
/// checks files both use these sentences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ForeignFile {
    Utf16,
    /// An Excel or OpenDocument workbook; both are zip archives.
    Zip,
    /// An Excel workbook in the format used until 2003.
    OldWorkbook,
    Compressed,
    Pdf,
    /// Text in Windows-1252, which Excel writes as plain "CSV".
    Windows1252,
    /// A first line with the names of the columns.
    Header,
    Semicolons,
    Tabs,
    /// Lines that end with CR alone, as on a Mac until 2001. Excel's "CSV (Macintosh)" has them.
    OldMac,
    /// Numbers with an exponent, as spreadsheets show long ones.
    Exponents,
}

/// A peculiarity of a file, and where it occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFinding {
    pub file: ForeignFile,
    /// The number of rows with it.
    pub rows: u64,
    /// The first line with it.
    pub line: u64,
}

impl ForeignFile {
    /// Returns the format of a file that starts with `head`, or `None` if the file may be UTF-8
    /// text.
    pub fn find(head: &[u8]) -> Option<Self> {
        match head {
            // A byte order mark, or an ASCII character encoded in two bytes. In a valid row,
            // neither of the first two bytes is a NUL.
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, ..] | [1..=0x7f, 0, ..] => Some(Self::Utf16),
            [b'P', b'K', 3, 4, ..] => Some(Self::Zip),
            [0xd0, 0xcf, 0x11, 0xe0, ..] => Some(Self::OldWorkbook),
            // gzip, xz, Zstandard, 7-Zip and RAR.
            [0x1f, 0x8b, ..]
            | [0xfd, b'7', b'z', b'X', ..]
            | [0x28, 0xb5, 0x2f, 0xfd, ..]
            | [b'7', b'z', 0xbc, 0xaf, ..]
            | [b'R', b'a', b'r', b'!', ..] => Some(Self::Compressed),
            [b'%', b'P', b'D', b'F', ..] => Some(Self::Pdf),
            _ => None,
        }
    }

    /// Whether the file has no lines of text to show.
    pub const fn is_binary(self) -> bool {
        matches!(self, Self::Zip | Self::OldWorkbook | Self::Compressed | Self::Pdf)
    }

    pub const fn reason(self) -> Reason {
        match self {
            Self::Utf16 | Self::Windows1252 => Reason::InvalidEncoding,
            Self::Zip | Self::OldWorkbook | Self::Compressed | Self::Pdf => Reason::InvalidFile,
            Self::OldMac => Reason::InvalidMessage,
            Self::Header | Self::Semicolons | Self::Tabs | Self::Exponents => Reason::InvalidNumber,
        }
    }

    /// Returns one sentence for a row or a file: the fault, and what to do.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Utf16 => {
                "The file is written in UTF-16, which Excel calls \"Unicode Text\"; save it as \
                 \"CSV UTF-8\"."
            }
            Self::Zip => {
                "The file is a spreadsheet's workbook (.xlsx or .ods) or another zip archive; save \
                 its sheet as \"CSV UTF-8\" and upload that."
            }
            Self::OldWorkbook => {
                "The file is an old Excel workbook (.xls) or another Office document; save its \
                 sheet as \"CSV UTF-8\" and upload that."
            }
            Self::Compressed => {
                "The file is compressed (gzip, xz, Zstandard, 7-Zip or RAR); unpack it and upload \
                 the text file."
            }
            Self::Pdf => "The file is a PDF document; upload a text file in UTF-8.",
            Self::Windows1252 => {
                "The text isn't UTF-8 but probably Windows-1252, which Excel calls \"CSV\"; save \
                 the file as \"CSV UTF-8\"."
            }
            Self::Header => {
                "The first line starts with words, as header lines do; remove it, so that the file \
                 starts with a number."
            }
            Self::Semicolons => {
                "A semicolon follows the number; save the file with a comma between number and \
                 message."
            }
            Self::Tabs => {
                "A tab follows the number; save the file with a comma between number and message."
            }
            Self::OldMac => {
                "The line ends with a carriage return (CR) alone, as in Excel's \"CSV \
                 (Macintosh)\"; save the file with line ends LF or CRLF."
            }
            Self::Exponents => {
                "A spreadsheet wrote the number with an exponent, such as 7.12E+07, and its \
                 digits may be lost; format the column as text and enter the numbers again."
            }
        }
    }
}

/// Whether text that isn't valid UTF-8 can be Windows-1252. Five bytes have no character there. A
/// multi-byte character of UTF-8 shows that the text is damaged UTF-8.
pub fn is_windows_1252(text: &[u8]) -> bool {
    text.utf8_chunks().all(|chunk| {
        chunk.valid().is_ascii()
            && !chunk
                .invalid()
                .iter()
                .any(|byte| windows_1252(*byte) == char::REPLACEMENT_CHARACTER)
    })
}

/// Returns a character of Windows-1252, or U+FFFD for the five bytes without one.
pub fn windows_1252(byte: u8) -> char {
    const FROM_80: [char; 32] = [
        '€', '\u{fffd}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{fffd}', 'Ž',
        '\u{fffd}', '\u{fffd}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ',
        '\u{fffd}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => FROM_80[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

/// Whether the rest of a line, after a CR, is the next row of a file whose lines end with CR.
pub fn is_next_row(rest: &[u8]) -> bool {
    let end = rest.iter().position(|byte| matches!(byte, b',' | b'\r')).unwrap_or(rest.len());
    str::from_utf8(&rest[..end]).is_ok_and(|number| Number::parse(number).is_ok())
}

/// Whether a line has a CR, and the next row after it.
pub fn has_old_line_end(line: &[u8]) -> bool {
    let end = line.iter().position(|&byte| byte == b'\r');
    end.is_some_and(|end| is_next_row(&line[end + 1..]))
}
