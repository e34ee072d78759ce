//! Encodes rows in the binary format of PostgreSQL's COPY. All integer columns are BIGINT.

use bytes::BufMut as _;

use super::query::{Argument, Values};

const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const TRAILER: i16 = -1;
/// The length that marks a null.
const NULL: i32 = -1;

/// Encodes rows. Each row gets its own values, followed by the values that all rows share.
pub(crate) fn rows<'a, V: Values<'a>>(
    rows: impl IntoIterator<Item = V>,
    shared: &[Argument<'_>],
) -> Vec<u8> {
    let mut out = HEADER.to_vec();
    for row in rows {
        let row = row.into_array();
        let row = row.as_ref();
        out.put_u16(u16::try_from(row.len() + shared.len()).unwrap_or(u16::MAX));
        for value in row.iter().chain(shared) {
            put(&mut out, value);
        }
    }
    out.put_i16(TRAILER);
    out
}

fn put(out: &mut Vec<u8>, value: &Argument<'_>) {
    match value {
        Argument::Int(Some(value)) => put_bytes(out, &value.to_be_bytes()),
        Argument::Text(Some(text)) => put_bytes(out, text.as_bytes()),
        Argument::Bytes(bytes) => put_bytes(out, bytes),
        Argument::Int(None) | Argument::Text(None) => out.put_i32(NULL),
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    // No value is too long for a `u32`, because the server's own limit on a message is much lower.
    out.put_u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_written_with_their_lengths() {
        let written = rows([(7_i64, None::<i64>)], &["ab".into()]);
        let rest = written.strip_prefix(HEADER).unwrap();
        let row = [
            &[0, 3][..],
            &[0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 7],
            &[0xff; 4],
            &[0, 0, 0, 2, b'a', b'b'],
            &[0xff; 2],
        ];
        assert_eq!(rest, row.concat());
        assert_eq!(HEADER.len(), 19);
    }
}
