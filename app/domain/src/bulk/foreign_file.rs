//! Files that aren't text in UTF-8 at all, known by their first bytes: without this, each of their
//! lines would be a bad row of its own, and none would say what the file is.

use crate::Reason;

/// Bytes that tell what a file is.
pub const HEAD_BYTES: usize = 4;

/// What a file is instead of text in UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignFile {
    Utf16,
    /// An Excel or OpenDocument workbook; both are zip archives.
    Zip,
    /// What Excel wrote until 2003.
    OldWorkbook,
    Compressed,
    Pdf,
}

impl ForeignFile {
    /// Tells what a file is that begins so; `None` for what may be text in UTF-8.
    pub fn find(head: &[u8]) -> Option<Self> {
        match head {
            // A byte order mark, or a character of ASCII in two bytes. No row has a NUL in front.
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
