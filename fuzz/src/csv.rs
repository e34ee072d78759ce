//! Uploaded files.

use domain::bulk::{FileFinding, first_lines};
use domain::{
    BulkError, BulkLimits, BulkMode, BulkParser, BulkRow, BulkWriting, MessageText, Number,
};

use crate::pieces::{option, pieces};

/// A file of one row more is refused.
const ROWS_MAX: u64 = 20;

/// The good rows that were passed on, and the result.
type Read = (Vec<BulkRow>, Result<u64, BulkError>);

/// A file is read the same in any pieces, its rows are in order, and good rows that are written
/// again are read again.
pub fn csv(data: &[u8]) {
    let (options, rest) = option(data);
    let (seed, file) = option(rest);
    let choose = |bit: u8| options & bit != 0;
    let parser = || {
        let mode = if choose(1) { BulkMode::OneToMany } else { BulkMode::OneToOne };
        let writing = if choose(2) { BulkWriting::UrlDecoded } else { BulkWriting::Plain };
        let limits = BulkLimits {
            rows_max: ROWS_MAX,
            message_pages_max: if choose(4) { 1 } else { 2 },
            replace_characters: choose(8),
        };
        let parser = BulkParser::new(mode, writing, limits);
        if choose(16) { parser.passing_all() } else { parser }
    };
    let whole = read(parser(), [file]);
    let in_pieces = read(parser(), pieces(file, seed));
    assert_eq!(in_pieces, whole);

    let (rows, result) = whole;
    let lines = file.split(|byte| *byte == b'\n').count() as u64;
    assert!(rows.iter().all(|row| (1..=lines).contains(&row.line)));
    assert!(rows.is_sorted_by(|one, next| one.line < next.line));
    match result {
        Ok(count) => {
            assert_eq!(count, rows.len() as u64);
            write_again(parser(), &rows);
        }
        Err(BulkError::Bad(bad)) => {
            assert!(bad.error_count >= bad.errors.len() as u64);
            assert!(bad.errors.iter().all(|row| (1..=lines).contains(&row.line)));
            assert!(bad.errors.is_sorted_by(|one, next| one.line < next.line));
            let found: Vec<_> = bad.findings.iter().map(|FileFinding { file, .. }| *file).collect();
            first_lines(file, &found);
        }
        Err(BulkError::TooManyRows) => assert!(lines > ROWS_MAX),
    }
}

fn read<'a>(mut parser: BulkParser, pieces: impl IntoIterator<Item = &'a [u8]>) -> Read {
    let mut rows = Vec::new();
    for piece in pieces {
        if let Err(error) = parser.push(piece, &mut |row| rows.push(row)) {
            // Where the parser stops depends on the pieces.
            return (Vec::new(), Err(error.into()));
        }
    }
    match parser.finish(&mut |row| rows.push(row)) {
        Err(BulkError::TooManyRows) => (Vec::new(), Err(BulkError::TooManyRows)),
        result => (rows, result),
    }
}

fn write_again(parser: BulkParser, rows: &[BulkRow]) {
    let written: String = rows.iter().map(write).collect();
    let (again, result) = read(parser, [written.as_bytes()]);
    assert_eq!(result, Ok(rows.len() as u64));
    let content = |row: &BulkRow| (row.number.clone(), row.message.clone());
    assert!(again.iter().map(content).eq(rows.iter().map(content)));
}

fn write(row: &BulkRow) -> String {
    let number = written(&row.number);
    let quoted = |text: &MessageText| format!(",\"{}\"", text.as_str().replace('"', "\"\""));
    format!("{number}{}\r\n", row.message.as_ref().map(quoted).unwrap_or_default())
}

fn written(number: &Number) -> String {
    let plus = if number.rule() == "international_plus_sign" { "+" } else { "" };
    format!("{plus}{}", number.digits())
}
