//! Recognises files that aren't UTF-8 text by their first bytes. Without this check, every line
//! would be a separate bad row, and no error would say what the file is.

use crate::Reason;

/// The number of leading bytes that identify a file.
pub const HEAD_BYTES: usize = 4;

/// The format of a file that isn't UTF-8 text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignFile {
    Utf16,
    /// An Excel or OpenDocument workbook; both are zip archives.
    Zip,
    /// An Excel workbook in the format used until 2003.
    OldWorkbook,
    Compressed,
    Pdf,
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

    pub const fn reason(self) -> Reason {
        match self {
            Self::Utf16 => Reason::InvalidEncoding,
            Self::Zip | Self::OldWorkbook | Self::Compressed | Self::Pdf => Reason::InvalidFile,
        }
    }

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
        }
    }
}
