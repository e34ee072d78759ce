//! Spools: the rows of an upload on disk, until they are messages. With SQLite a spool is a file;
//! with PostgreSQL it is in a table, a frame in a row, so that any process can go on with it
//! ([`crate::spool_store`]).
//!
//! A spool is a chain of frames. A frame holds rows as the JSON array that the database is handed,
//! so that expanding it needs no parsing, and a head that says how long it is, what its rows cost,
//! and its checksum.
//!
//! Rows are sorted by number, some ten thousands at a time: neighbours in a frame are neighbours in
//! the index by number then. In the order of the file, each row of a transaction would touch
//! another page of it, and writing those pages would take most of the time.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crc::{CRC_32_ISO_HDLC, Crc};
use domain::{BulkRow, Kind};

use crate::error::{Broken, Error, Result};
use crate::store::messages::FrameRow;

/// Rows of a frame: a transaction stores some frames, and ends after the one in which a send came.
const FRAME_ROWS_MAX: u32 = 250;
/// Bytes of rows after which a frame ends.
const FRAME_BYTES_MAX: usize = 256 * 1024;
/// Rows and bytes that are sorted together.
const WINDOW_ROWS_MAX: usize = 64 * 1024;
const WINDOW_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Length, rows, pages local, pages international, checksum of these and of the rows.
const HEAD_BYTES: usize = 4 + 4 + 8 + 8 + 4;
const CHECKED_HEAD_BYTES: usize = HEAD_BYTES - 4;
static CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

/// How the files are called.
const EXTENSION: &str = "rows";
/// Of the file beside the folder that the process holds which serves: another one would take its
/// files for left-overs.
const LOCK: &str = "lock";

/// Where spool files are.
#[derive(Clone, Debug)]
pub(crate) struct SpoolFolder {
    folder: PathBuf,
    lock: Arc<Mutex<Option<File>>>,
}

impl SpoolFolder {
    /// In the data folder; made when it is first needed.
    pub(crate) fn within(data_dir: &Path) -> Self {
        Self {
            folder: data_dir.join("spool"),
            lock: Arc::default(),
        }
    }

    pub(crate) fn exists(&self) -> bool {
        self.folder.is_dir()
    }

    /// Makes the folder if it isn't there, and takes it for this process; false when another one
    /// has it.
    pub(crate) fn own(&self) -> io::Result<bool> {
        make_folder(&self.folder)?;
        if let Some(parent) = self.folder.parent() {
            File::open(parent)?.sync_all()?;
        }
        let lock = File::create(self.folder.with_added_extension(LOCK))?;
        if lock.try_lock().is_err() {
            return Ok(false);
        }
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = Some(lock);
        Ok(true)
    }

    /// Leaves the folder to whoever serves next.
    pub(crate) fn disown(&self) {
        self.lock
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Makes a new file, its owner's alone: numbers and texts are inside. Its name is made of some
    /// randomness.
    pub(crate) fn create(&self, random: [u8; 16]) -> io::Result<(String, File)> {
        let name = format!("{}.{EXTENSION}", hex::encode(random));
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(self.path(&name))?;
        Ok((name, file))
    }

    /// Makes sure that a new file is found after a power cut.
    pub(crate) fn sync(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()
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

    /// Gives every file a second name in another folder (or copies it, on another disk); those that
    /// have one already are left.
    pub(crate) fn link_into(&self, folder: &Path) -> io::Result<()> {
        for name in self.names()? {
            make_folder(folder)?;
            let (from, to) = (self.path(&name), folder.join(&name));
            match std::fs::hard_link(&from, &to) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                // Gone since it was listed: its rows are messages.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => drop(std::fs::copy(&from, &to)?),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// The names of the files that are there.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == EXTENSION)
                && let Some(name) = path.file_name()
            {
                names.push(name.to_string_lossy().into_owned());
            }
        }
        Ok(names)
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
    /// The window that is still being filled: rows in the order of the file, and their JSON.
    rows: Vec<Row>,
    json: Vec<u8>,
}

struct Row {
    /// The number's digits, so that they sort as text does.
    digits: [u8; 16],
    local: bool,
    pages: u64,
    start: usize,
    end: usize,
}

impl FrameWriter {
    /// Adds a row; when a window is full, its frames go to the end of `out`.
    pub(crate) fn add(&mut self, row: &BulkRow, out: &mut Vec<u8>) -> Result<()> {
        let local = row.number.kind() == Kind::Local;
        let (digits, flag) = (row.number.digits(), u8::from(local));
        let start = self.json.len();
        let pages = match &row.message {
            None => {
                write_json(&mut self.json, &(digits, flag))?;
                1
            }
            Some(message) => {
                let (pages, segments) = (message.pages(), message.segments());
                let row = (digits, flag, message.as_str(), pages, segments);
                write_json(&mut self.json, &row)?;
                pages as u64
            }
        };
        let mut key = [0; 16];
        for (place, digit) in key.iter_mut().zip(digits.bytes()) {
            *place = digit;
        }
        self.rows.push(Row {
            digits: key,
            local,
            pages,
            start,
            end: self.json.len(),
        });
        if self.rows.len() >= WINDOW_ROWS_MAX || self.json.len() >= WINDOW_BYTES_MAX {
            self.end_window(out)?;
        }
        Ok(())
    }

    /// Ends the window that isn't full, if there is one.
    pub(crate) fn end_window(&mut self, out: &mut Vec<u8>) -> Result<()> {
        // Stable: several messages to one number stay in the order of the file.
        self.rows.sort_by_key(|row| row.digits);
        let mut frame = FrameBuffer::default();
        for row in &self.rows {
            frame.add(row, &self.json[row.start..row.end]);
            if frame.head.rows == FRAME_ROWS_MAX || frame.json.len() >= FRAME_BYTES_MAX {
                std::mem::take(&mut frame).write(out)?;
            }
        }
        if frame.head.rows > 0 {
            frame.write(out)?;
        }
        self.rows.clear();
        self.json.clear();
        Ok(())
    }
}

/// A frame that is being put together.
#[derive(Default)]
struct FrameBuffer {
    head: Head,
    json: Vec<u8>,
}

impl FrameBuffer {
    fn add(&mut self, row: &Row, json: &[u8]) {
        self.json
            .push(if self.head.rows == 0 { b'[' } else { b',' });
        self.json.extend_from_slice(json);
        self.head.rows += 1;
        if row.local {
            self.head.pages_local += row.pages;
        } else {
            self.head.pages_international += row.pages;
        }
    }

    fn write(mut self, out: &mut Vec<u8>) -> Result<()> {
        self.json.push(b']');
        let length = u32::try_from(self.json.len())
            .map_err(|_| Error::Broken(Broken::File(io::ErrorKind::FileTooLarge.into())))?;
        let head = self.head.bytes(length);
        let mut sum = CRC.digest();
        sum.update(&head);
        sum.update(&self.json);
        out.extend_from_slice(&head);
        out.extend_from_slice(&sum.finalize().to_le_bytes());
        out.append(&mut self.json);
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

impl Frame {
    /// Whom the rows are for.
    pub(crate) fn numbers(&self) -> Result<Vec<(String, Kind)>> {
        let rows = FrameRow::parse_all(&self.json)?;
        let numbers = rows.into_iter();
        Ok(numbers
            .map(|row| (row.digits().to_owned(), row.kind()))
            .collect())
    }
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

/// Reads the frame at an offset of a file.
pub(crate) fn read_frame(path: &Path, offset: i64) -> std::result::Result<Frame, FrameError> {
    parse_frame(read_bytes(path, offset)?, offset)
}

/// The frame at an offset of a file as it stands there, head and rows.
pub(crate) fn read_bytes(path: &Path, offset: i64) -> std::result::Result<Vec<u8>, FrameError> {
    let mut file = File::open(path)?;
    let start = file.seek(SeekFrom::Start(offset.unsigned_abs()))?;
    let mut head = [0; HEAD_BYTES];
    file.read_exact(&mut head)?;
    let length = u64::from(u32_at(&head, 0));
    // Before anything is allocated for it.
    if start + HEAD_BYTES as u64 + length > file.metadata()?.len() {
        return Err(FrameError::Lost("a frame is cut off".to_owned()));
    }
    let mut bytes = head.to_vec();
    bytes.resize(
        HEAD_BYTES + usize::try_from(length).unwrap_or(usize::MAX),
        0,
    );
    file.read_exact(&mut bytes[HEAD_BYTES..])?;
    Ok(bytes)
}

/// Reads a frame that began at an offset.
pub(crate) fn parse_frame(
    mut bytes: Vec<u8>,
    offset: i64,
) -> std::result::Result<Frame, FrameError> {
    if bytes.len() < HEAD_BYTES || bytes.len() - HEAD_BYTES != u32_at(&bytes, 0) as usize {
        return Err(FrameError::Lost("a frame is cut off".to_owned()));
    }
    let rows = bytes.split_off(HEAD_BYTES);
    let (checked, sum) = bytes.split_at(CHECKED_HEAD_BYTES);
    let mut computed = CRC.digest();
    computed.update(checked);
    computed.update(&rows);
    if computed.finalize().to_le_bytes() != sum {
        return Err(FrameError::Lost("a checksum is wrong".to_owned()));
    }
    let length = (HEAD_BYTES + rows.len()) as u64;
    let json = String::from_utf8(rows).map_err(|error| FrameError::Lost(error.to_string()))?;
    Ok(Frame {
        json,
        rows: i64::from(u32_at(&bytes, 4)),
        pages_local: u64_at(&bytes, 8),
        pages_international: u64_at(&bytes, 16),
        end: offset + length.cast_signed(),
    })
}

/// Cuts a chain of whole frames into them.
pub(crate) fn frames(mut chain: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        (!chain.is_empty()).then(|| {
            let length = HEAD_BYTES + u32_at(chain, 0) as usize;
            let (frame, rest) = chain.split_at(length);
            chain = rest;
            frame
        })
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
