//! Spool files: the rows of an upload on disk, until they are messages.
//!
//! A file is a chain of frames. A frame holds rows as the JSON array that the database is handed, so that
//! expanding it needs no parsing, and a head that says how long it is, what its rows cost, and its checksum.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use crc::{CRC_32_ISO_HDLC, Crc};
use domain::{BulkRow, Kind};

use crate::error::{Broken, Error, Result};

/// Rows of a frame: one transaction stores them, and a send that comes meanwhile waits for it.
pub(crate) const FRAME_ROWS_MAX: u32 = 1000;
/// Bytes of rows after which a frame ends.
const FRAME_BYTES_MAX: usize = 256 * 1024;
/// Length, rows, pages local, pages international, checksum of these and of the rows.
const HEAD_BYTES: usize = 4 + 4 + 8 + 8 + 4;
const CHECKED_HEAD_BYTES: usize = HEAD_BYTES - 4;
static CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

/// Where spool files are.
#[derive(Clone, Debug)]
pub(crate) struct SpoolFolder(PathBuf);

impl SpoolFolder {
    /// In the data folder; made when it is first needed.
    pub(crate) fn within(data_dir: &Path) -> Self {
        Self(data_dir.join("spool"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Makes a new file, its owner's alone: numbers and texts are inside.
    pub(crate) fn create(&self, name: &str) -> io::Result<File> {
        make_folder(&self.0)?;
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(self.path(name))
    }

    /// Makes sure that a new file is found after a power cut.
    pub(crate) fn sync(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }

    /// Removes a file; one that is gone is fine.
    pub(crate) fn remove(&self, name: &str) {
        match std::fs::remove_file(self.path(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::error!(name, %error, "a spool file can't be removed");
            }
            _ => {}
        }
    }

    /// The names of the files that are there.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let entries = match std::fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        entries
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Rows on their way into frames.
#[derive(Default)]
pub(crate) struct FrameWriter {
    /// The rows of the frame that isn't full yet.
    rows: Vec<u8>,
    head: Head,
}

impl FrameWriter {
    /// Adds a row; a full frame goes to the end of `out`.
    pub(crate) fn add(&mut self, row: &BulkRow, out: &mut Vec<u8>) -> Result<()> {
        self.rows
            .push(if self.rows.is_empty() { b'[' } else { b',' });
        let local = row.number.kind() == Kind::Local;
        let (digits, flag) = (row.number.digits(), u8::from(local));
        let pages = match &row.message {
            None => {
                write_json(&mut self.rows, &(digits, flag))?;
                1
            }
            Some(message) => {
                let (pages, segments) = (message.pages(), message.segments());
                let row = (digits, flag, message.as_str(), pages, segments);
                write_json(&mut self.rows, &row)?;
                pages as u64
            }
        };
        self.head.rows += 1;
        if local {
            self.head.pages_local += pages;
        } else {
            self.head.pages_international += pages;
        }
        if self.head.rows == FRAME_ROWS_MAX || self.rows.len() >= FRAME_BYTES_MAX {
            self.end_frame(out)?;
        }
        Ok(())
    }

    /// Ends the frame that isn't full, if there is one.
    pub(crate) fn end_frame(&mut self, out: &mut Vec<u8>) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        self.rows.push(b']');
        let head = std::mem::take(&mut self.head);
        let length = u32::try_from(self.rows.len())
            .map_err(|_| Error::Broken(Broken::File(io::ErrorKind::FileTooLarge.into())))?;
        let head = head.bytes(length);
        let mut sum = CRC.digest();
        sum.update(&head);
        sum.update(&self.rows);
        out.extend_from_slice(&head);
        out.extend_from_slice(&sum.finalize().to_le_bytes());
        out.append(&mut self.rows);
        Ok(())
    }
}

fn write_json(out: &mut Vec<u8>, row: &impl serde::Serialize) -> Result<()> {
    serde_json::to_writer(out, row).map_err(|error| Error::Broken(error.into()))
}

/// What a frame's head says of its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Head {
    rows: u32,
    pages_local: u64,
    pages_international: u64,
}

impl Head {
    fn bytes(self, length: u32) -> [u8; CHECKED_HEAD_BYTES] {
        let mut bytes = [0; CHECKED_HEAD_BYTES];
        bytes[0..4].copy_from_slice(&length.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.rows.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.pages_local.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.pages_international.to_le_bytes());
        bytes
    }
}

/// Rows that are stored together.
pub(crate) struct Frame {
    /// `[[digits, local 0|1, body, pages, segments]]`; the last three not in one to many.
    pub(crate) json: String,
    pub(crate) rows: i64,
    /// Billing units; in one to many, of a text of one page.
    pub(crate) pages_local: u64,
    pub(crate) pages_international: u64,
    /// Where the next frame begins.
    pub(crate) end: i64,
}

/// Why a frame can't be had.
#[derive(Debug)]
pub(crate) enum FrameError {
    /// The file is gone, too short, or not what was written: its rows are lost.
    Lost(String),
    /// The machine failed; another try may do better.
    Io(io::Error),
}

impl From<io::Error> for FrameError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof => Self::Lost(error.to_string()),
            _ => Self::Io(error),
        }
    }
}

/// Reads the frame at an offset.
pub(crate) fn read_frame(path: &Path, offset: i64) -> std::result::Result<Frame, FrameError> {
    let mut file = File::open(path)?;
    let start = file.seek(SeekFrom::Start(offset.unsigned_abs()))?;
    let mut head = [0; HEAD_BYTES];
    file.read_exact(&mut head)?;
    let (checked, sum) = head.split_at(CHECKED_HEAD_BYTES);
    let length = u64::from(u32_at(&head, 0));
    let file_length = file.metadata()?.len();
    let end = start + HEAD_BYTES as u64 + length;
    // Before anything is allocated for it.
    if end > file_length {
        return Err(FrameError::Lost("a frame is cut off".to_owned()));
    }
    let mut rows = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    file.read_exact(&mut rows)?;
    let mut computed = CRC.digest();
    computed.update(checked);
    computed.update(&rows);
    if computed.finalize().to_le_bytes() != sum {
        return Err(FrameError::Lost("a checksum is wrong".to_owned()));
    }
    let json = String::from_utf8(rows).map_err(|error| FrameError::Lost(error.to_string()))?;
    Ok(Frame {
        json,
        rows: i64::from(u32_at(&head, 4)),
        pages_local: u64_at(&head, 8),
        pages_international: u64_at(&head, 16),
        end: end.cast_signed(),
    })
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(value)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(value)
}
