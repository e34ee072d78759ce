//! The format of a spool, which holds the rows of an upload until they are messages.
//!
//! A spool is a chain of chunks. With SQLite, the chain is a file. With PostgreSQL, each chunk is a
//! row of a table ([`crate::uploads::spool_store`]). A chunk has a head of [`HEAD_BYTES`], followed
//! by its rows as a JSON array. The head is little-endian:
//!
//! | bytes | field |
//! |---|---|
//! | 4 | [`MARK`], which identifies a chunk, and [`VERSION`], the version of the format |
//! | 4 | length of the rows in bytes |
//! | 4 | number of rows |
//! | 8 | pages to local numbers; if all rows share a text, as if it had one page |
//! | 8 | pages to international numbers, counted in the same way |
//! | 4 | CRC-32 (ISO-HDLC) of the fields above and of the rows |
//!
//! The number of pages of a text is stored with the row, or with the batch if all rows share a
//! text. An upload's messages therefore cost what was reserved for them, even if a release that
//! counts pages differently expands them.
//!
//! Rows are sorted by number, tens of thousands at a time, so that neighbours in a chunk are
//! neighbours in the index by number. In the order of the file, each row of a transaction would
//! touch another page of the index, and writing those pages would take most of the time.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use bytes::{Buf as _, BufMut as _};
use crc::{CRC_32_ISO_HDLC, Crc};
use domain::{BulkRow, Kind, PageCount, PagesByPrice, PricesInForce};

use store::batches::ChunkRow;
use store::error::{Error, Fault, Result};

/// The most rows of a chunk. With SQLite, a transaction stores several chunks, and ends after the
/// chunk during which a send arrived.
pub(crate) const CHUNK_ROWS_MAX: u32 = 250;
/// The number of bytes of rows after which a chunk ends.
const CHUNK_BYTES_MAX: usize = 256 * 1024;
/// The most rows and bytes of a window. The rows of a window are sorted together.
const WINDOW_ROWS_MAX: usize = 64 * 1024;
const WINDOW_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The upper three bytes of the first word of each chunk.
const MARK: u32 = 0x4847_5300;
/// The version of the format. Raise it with every change of the format. The maximum is 255.
const VERSION: u32 = 1;
const CHECKSUM_BYTES: usize = 4;
const HEAD_BYTES: usize = 4 + 4 + 4 + 8 + 8 + CHECKSUM_BYTES;
static CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

/// Sorts rows and puts them into chunks.
#[derive(Default)]
pub(crate) struct ChunkWriter {
    /// The rows of the current window in the order of the file, and their JSON.
    rows: Vec<Row>,
    json: Vec<u8>,
}

struct Row {
    /// The number's digits, padded so that they sort like text.
    digits: [u8; 16],
    kind: Kind,
    pages: u64,
    start: usize,
    end: usize,
}

impl ChunkWriter {
    /// Adds a row. If this fills the window, appends the window's chunks to `out`.
    pub(crate) fn add(&mut self, row: &BulkRow, out: &mut Vec<u8>) -> Result<()> {
        let (digits, kind) = (row.number.digits(), row.number.kind());
        let flag = u8::from(kind == Kind::Local);
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
        for (slot, digit) in key.iter_mut().zip(digits.bytes()) {
            *slot = digit;
        }
        self.rows.push(Row { digits: key, kind, pages, start, end: self.json.len() });
        if self.rows.len() >= WINDOW_ROWS_MAX || self.json.len() >= WINDOW_BYTES_MAX {
            self.end_window(out)?;
        }
        Ok(())
    }

    /// Ends the current window and appends its chunks to `out`.
    pub(crate) fn end_window(&mut self, out: &mut Vec<u8>) -> Result<()> {
        // The sort is stable, so several messages to one number stay in the order of the file.
        self.rows.sort_by_key(|row| row.digits);
        let mut chunk = ChunkBuffer::default();
        for row in &self.rows {
            chunk.add(row, &self.json[row.start..row.end]);
            if chunk.head.rows == CHUNK_ROWS_MAX || chunk.json.len() >= CHUNK_BYTES_MAX {
                std::mem::take(&mut chunk).write(out)?;
            }
        }
        if chunk.head.rows > 0 {
            chunk.write(out)?;
        }
        self.rows.clear();
        self.json.clear();
        Ok(())
    }
}

/// A chunk that is being built.
#[derive(Default)]
struct ChunkBuffer {
    head: Head,
    json: Vec<u8>,
}

impl ChunkBuffer {
    fn add(&mut self, row: &Row, json: &[u8]) {
        self.json.push(if self.head.rows == 0 { b'[' } else { b',' });
        self.json.extend_from_slice(json);
        self.head.rows += 1;
        self.head.pages.add(row.kind, row.pages);
    }

    fn write(mut self, out: &mut Vec<u8>) -> Result<()> {
        self.json.push(b']');
        self.head.length = u32::try_from(self.json.len())
            .map_err(|_| Error::Failed(Fault::File(io::ErrorKind::FileTooLarge.into())))?;
        self.head.write(&self.json, out);
        out.append(&mut self.json);
        Ok(())
    }
}

fn write_json(out: &mut Vec<u8>, row: &impl serde::Serialize) -> Result<()> {
    serde_json::to_writer(out, row).map_err(|error| Error::Failed(error.into()))
}

/// The fields of a chunk's head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Head {
    /// The length of the rows in bytes.
    length: u32,
    rows: u32,
    pages: PageCount,
}

impl Head {
    fn write(self, rows: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u32_le(MARK | VERSION);
        out.put_u32_le(self.length);
        out.put_u32_le(self.rows);
        out.put_u64_le(self.pages.local);
        out.put_u64_le(self.pages.international);
        let checksum = checksum(&out[start..], rows);
        out.put_u32_le(checksum);
    }

    /// Reads the head at the start of a chunk. Returns it with its checksum.
    fn read(mut chunk: &[u8]) -> std::result::Result<(Self, u32), ChunkError> {
        if chunk.len() < HEAD_BYTES {
            return Err(ChunkError::Lost("a chunk is cut off".to_owned()));
        }
        let (mark, version) = {
            let word = chunk.get_u32_le();
            (word & !0xff, word & 0xff)
        };
        let head = Self {
            length: chunk.get_u32_le(),
            rows: chunk.get_u32_le(),
            pages: PageCount { local: chunk.get_u64_le(), international: chunk.get_u64_le() },
        };
        if mark != MARK {
            Err(ChunkError::Lost("a chunk doesn't begin with its mark".to_owned()))
        } else if version == VERSION {
            Ok((head, chunk.get_u32_le()))
        } else {
            let why = format!(
                "the rows of an upload have version {version} of the spool's format, and this \
                 release reads {VERSION}: start the release that accepted the upload"
            );
            Err(ChunkError::Io(io::Error::other(why)))
        }
    }
}

/// Returns the checksum of a head, without its last field, and of the rows after it.
fn checksum(head: &[u8], rows: &[u8]) -> u32 {
    let mut checksum = CRC.digest();
    checksum.update(head);
    checksum.update(rows);
    checksum.finalize()
}

/// A chunk: rows that are stored together.
pub(crate) struct Chunk {
    /// `[[digits, local 0|1, body, pages, segments]]`, without the last three in mode one to many.
    pub(crate) json: String,
    pub(crate) rows: i64,
    /// The pages. In mode one to many, as if the text had one page.
    pub(crate) pages: PageCount,
    /// The offset of the next chunk.
    pub(crate) end: i64,
}

impl Chunk {
    /// Appends the rows of the next chunk.
    pub(crate) fn append(&mut self, next: &Self) {
        // Joins the two arrays. Neither of them is empty.
        self.json.pop();
        self.json.push(',');
        self.json.push_str(next.json.get(1..).unwrap_or_default());
        self.rows += next.rows;
        self.pages.add(Kind::Local, next.pages.local);
        self.pages.add(Kind::International, next.pages.international);
        self.end = next.end;
    }

    /// Adds the pages of the rows to `pages`. In mode one to many, the text counts as one page.
    pub(crate) fn count_pages(
        &self,
        prices: &PricesInForce,
        pages: &mut PagesByPrice,
    ) -> Result<()> {
        if prices.has_prefixes() {
            for row in ChunkRow::parse_all(&self.json)? {
                pages.add(prices, (row.kind(), row.digits()), row.pages().unwrap_or(1));
            }
        } else {
            pages.add_at_base(self.pages);
        }
        Ok(())
    }

    /// Returns the number of each row, its kind, and the segments of the row's text. In mode one to
    /// many, `of_all` is the number of segments of every row.
    pub(crate) fn routing_facts(
        &self,
        of_all: Option<usize>,
    ) -> Result<Vec<(String, Kind, usize)>> {
        let rows = ChunkRow::parse_all(&self.json)?.into_iter();
        let facts = rows.map(|row| {
            let segments = row.segments().or(of_all).unwrap_or(1);
            (row.digits().to_owned(), row.kind(), segments)
        });
        Ok(facts.collect())
    }
}

/// Why a chunk can't be read.
#[derive(Debug)]
pub(crate) enum ChunkError {
    /// The chunk is missing, too short, or damaged. Its rows are lost.
    Lost(String),
    /// Reading failed, or another release wrote the chunk. Another attempt may succeed.
    Io(io::Error),
}

impl From<io::Error> for ChunkError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof => Self::Lost(error.to_string()),
            _ => Self::Io(error),
        }
    }
}

impl From<ChunkError> for io::Error {
    fn from(error: ChunkError) -> Self {
        match error {
            ChunkError::Lost(why) => Self::other(why),
            ChunkError::Io(error) => error,
        }
    }
}

/// Reads the chunk at an offset of a file.
pub(crate) fn read_chunk(path: &Path, offset: i64) -> std::result::Result<Chunk, ChunkError> {
    parse_chunk(read_bytes(path, offset)?, offset)
}

pub(crate) fn read_bytes(path: &Path, offset: i64) -> std::result::Result<Vec<u8>, ChunkError> {
    let mut file = File::open(path)?;
    let start = file.seek(SeekFrom::Start(offset.unsigned_abs()))?;
    let mut head = [0; HEAD_BYTES];
    file.read_exact(&mut head)?;
    let length = Head::read(&head)?.0.length;
    // Checked before memory is allocated for the rows.
    if start + HEAD_BYTES as u64 + u64::from(length) > file.metadata()?.len() {
        return Err(ChunkError::Lost("a chunk is cut off".to_owned()));
    }
    let mut bytes = head.to_vec();
    bytes.resize(HEAD_BYTES + length as usize, 0);
    file.read_exact(&mut bytes[HEAD_BYTES..])?;
    Ok(bytes)
}

/// Parses a chunk that starts at this offset.
pub(crate) fn parse_chunk(
    mut bytes: Vec<u8>,
    offset: i64,
) -> std::result::Result<Chunk, ChunkError> {
    let (head, stored_checksum) = Head::read(&bytes)?;
    let rows = bytes.split_off(HEAD_BYTES);
    if rows.len() != head.length as usize {
        return Err(ChunkError::Lost("a chunk is cut off".to_owned()));
    }
    if checksum(&bytes[..HEAD_BYTES - CHECKSUM_BYTES], &rows) != stored_checksum {
        return Err(ChunkError::Lost("a checksum is wrong".to_owned()));
    }
    let length = (HEAD_BYTES + rows.len()) as u64;
    let json = String::from_utf8(rows).map_err(|error| ChunkError::Lost(error.to_string()))?;
    Ok(Chunk {
        json,
        rows: i64::from(head.rows),
        pages: head.pages,
        end: offset + length.cast_signed(),
    })
}

/// Splits a chain that this process wrote into its chunks.
pub(crate) fn chunks(mut chain: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (head, _) = Head::read(chain).ok()?;
        let (chunk, rest) = chain.split_at_checked(HEAD_BYTES + head.length as usize)?;
        chain = rest;
        Some(chunk)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk() -> Vec<u8> {
        let rows = b"[]";
        let head = Head { length: 2, rows: 1, ..Head::default() };
        let mut chunk = Vec::new();
        head.write(rows, &mut chunk);
        chunk.extend_from_slice(rows);
        chunk
    }

    #[test]
    fn a_chunk_is_read_as_it_was_written() {
        let found = parse_chunk(chunk(), 7).unwrap();
        assert_eq!((found.json.as_str(), found.rows), ("[]", 1));
        assert_eq!(found.end, 7 + i64::try_from(chunk().len()).unwrap());
    }

    #[test]
    fn damaged_bytes_are_lost_rows() {
        // The first byte is the version. Each of the others is damaged in turn.
        for at in 1..chunk().len() {
            let mut damaged = chunk();
            damaged[at] ^= 0x10;
            let read = parse_chunk(damaged, 0);
            assert!(matches!(read, Err(ChunkError::Lost(_))), "byte {at}");
        }
        assert!(matches!(parse_chunk(vec![0; 40], 0), Err(ChunkError::Lost(_))));
    }

    #[test]
    fn a_chunk_of_another_release_waits_for_it() {
        let mut newer = chunk();
        newer[0] += 1;
        assert!(matches!(parse_chunk(newer, 0), Err(ChunkError::Io(_))));
    }
}
