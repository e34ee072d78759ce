//! Rows as PostgreSQL's COPY takes them in its binary format. A value of a column of whole numbers
//! is a BIGINT there.

use bytes::BufMut as _;

use super::query::{Argument, Values};

const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const TRAILER: i16 = -1;
/// The length of a value that is null.
const NULL: i32 = -1;

/// Rows, each with the values that all rows share after its own.
pub(super) fn rows<'a, V: Values<'a>>(
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
    // No message to the server is this long: the server would refuse it.
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
