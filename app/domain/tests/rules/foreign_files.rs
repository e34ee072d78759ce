//! Files that other programs wrote in their own way: what they are, and how they are shown.

use domain::bulk::{ForeignFile, first_lines};
use domain::{BadFile, BulkError, BulkLimits, BulkMode, BulkParser, BulkRow, BulkWriting};

const LIMITS: BulkLimits =
    BulkLimits { rows_max: 1_000, message_pages_max: 1, replace_characters: false };

/// Parses a file in pieces. Returns the lines of the good rows, and the bad rows.
fn read(mode: BulkMode, file: &[u8], size: usize) -> (Vec<u64>, BadFile) {
    let mut parser = BulkParser::new(mode, BulkWriting::Plain, LIMITS).passing_all();
    let mut good = Vec::new();
    let mut take = |row: BulkRow| good.push(row.line);
    for piece in file.chunks(size) {
        parser.push(piece, &mut take).unwrap();
    }
    let bad = match parser.finish(&mut take) {
        Err(BulkError::Bad(bad)) => bad,
        other => panic!("{other:?}"),
    };
    (good, bad)
}

/// Returns what a file is, each with its number of rows and its first line.
fn findings(mode: BulkMode, file: &[u8]) -> Vec<(ForeignFile, u64, u64)> {
    let (good, bad) = read(mode, file, file.len().max(1));
    assert_eq!(read(mode, file, 1), (good, bad.clone()), "byte by byte");
    for error in &bad.errors {
        let foreign = bad.findings.iter().find(|found| found.file.sentence() == error.detail);
        assert!(foreign.is_none_or(|found| found.line <= error.line), "{error:?}");
    }
    bad.findings.iter().map(|found| (found.file, found.rows, found.line)).collect()
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[test]
fn each_kind_of_file_is_recognised() {
    use ForeignFile::{
        Compressed, Exponents, Header, OldMac, OldWorkbook, Pdf, Semicolons, Tabs, Utf16,
        Windows1252, Zip,
    };
    for (file, expected) in [
        (&utf16("\u{feff}58000000,a\n58000001,b\n")[..], &[(Utf16, 1, 1)][..]),
        (b"PK\x03\x04\x14\0\x06\0", &[(Zip, 1, 1)]),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", &[(OldWorkbook, 1, 1)]),
        (b"\x1f\x8b\x08\0\0", &[(Compressed, 1, 1)]),
        (b"%PDF-1.7\n", &[(Pdf, 1, 1)]),
        (b"58000000,ok\n58000001,caf\xe9\n58000002,\"\x93a\x94\"\n", &[(Windows1252, 2, 2)]),
        (b"58000000;a\n58000001;b, c\n", &[(Semicolons, 2, 1)]),
        (b"58000000;caf\xe9\n58000001;b\n", &[(Windows1252, 1, 1), (Semicolons, 2, 1)]),
        (b"Num\xe9ro,Texte\n58000001,b\n", &[(Windows1252, 1, 1), (Header, 1, 1)]),
        (b"\"58000000\";\"a\"\r\n", &[(Semicolons, 1, 1)]),
        (b"58000000\ta\n", &[(Tabs, 1, 1)]),
        (b"number,message\n58000000,a\n", &[(Header, 1, 1)]),
        (b"\xef\xbb\xbf\"Number\",\"Message\"\r\n58000000,a\r\n", &[(Header, 1, 1)]),
        (
            "Numéro;Texte\n58000000;a\n58000001;b\n".as_bytes(),
            &[(Header, 1, 1), (Semicolons, 2, 2)],
        ),
        (b"58000000,a\r58000001,b\r", &[(OldMac, 1, 1)]),
        (b"58000000,\"a\"\r58000001,\"b\"\r", &[(OldMac, 1, 1)]),
        (b"number,message\r58000001,b\r", &[(OldMac, 1, 1)]),
        (b"58000000,a\n5.8E+07,b\n2,66571E+10,c\n", &[(Exponents, 2, 2)]),
        (b"5,8E+07;a\n\"5.8E7\"\tb\n", &[(Exponents, 2, 1)]),
    ] {
        let shown = String::from_utf8_lossy(file);
        assert_eq!(findings(BulkMode::OneToOne, file), expected, "{shown:?}");
    }
    for (file, expected) in [
        (&b"Phone\n58000000\n"[..], &[(Header, 1, 1)][..]),
        (b"58000000\r58000001\r58000002", &[(OldMac, 1, 1)]),
        (b"58000000;\n", &[(Semicolons, 1, 1)]),
        (b"5.8E+07\n5,8E+07\n", &[(Exponents, 2, 1)]),
        (b"58000000\xa0\n", &[(Windows1252, 1, 1)]),
    ] {
        let shown = String::from_utf8_lossy(file);
        assert_eq!(findings(BulkMode::OneToMany, file), expected, "{shown:?}");
    }
    // An old Mac's file is one line, which may be longer than any row.
    let long = b"58000000,a\r".repeat(1_000);
    assert_eq!(findings(BulkMode::OneToOne, &long), [(OldMac, 1, 1)]);
}

#[test]
fn ordinary_mistakes_are_no_other_programs() {
    for file in [
        // A CR in a message; words in another line than the first; damaged UTF-8; a byte that
        // Windows-1252 doesn't have.
        &b"58000000,a\rb\n"[..],
        b"58000000,a\nx,b\n",
        b"58000000,\xc3\xa9\xc3\n",
        b"58000000,\x81\n",
        b"123,a\n",
        b"1234567e5,a\n",
        b"?\n",
        b"",
    ] {
        assert_eq!(findings(BulkMode::OneToOne, file), [], "{:?}", String::from_utf8_lossy(file));
    }
}

#[test]
fn all_good_rows_can_be_passed_on_with_their_lines() {
    let file = b"58000000,\"a\nb\"\nx\n58000001,c\n\n58000002,d";
    let (good, bad) = read(BulkMode::OneToOne, file, 7);
    assert_eq!(good, [1, 4, 6]);
    assert_eq!(bad.errors.iter().map(|bad| bad.line).collect::<Vec<_>>(), [3, 5]);
}

#[test]
fn the_first_lines_are_shown_as_they_are_read() {
    use ForeignFile::{OldMac, Semicolons, Utf16, Windows1252, Zip};
    for (head, is, expected) in [
        (&b"58000000;a\r\n58000001;b\r\n"[..], Semicolons, &["58000000;a", "58000001;b"][..]),
        (b"\xef\xbb\xbf58000000\ta\0\x7f\n\n\n", Semicolons, &["58000000␉a␀␡"]),
        (b"58000000,a\r58000001,b\r58", OldMac, &["58000000,a␍58000001,b␍58"]),
        (b"58000000,caf\xe9 \x80\n", Windows1252, &["58000000,café €"]),
        (&utf16("\u{feff}58000000,é\r\n58000001,b\n"), Utf16, &["58000000,é", "58000001,b"]),
        (b"\x005\x00,\0a", Utf16, &["5,a"]),
        (b"1\n2\n3\n4\n5\n6\n", Semicolons, &["1", "2", "3", "4", "5"]),
        ("5,\u{202e}a".as_bytes(), Semicolons, &["5,\\u{202e}a"]),
        (b"PK\x03\x04 text", Zip, &[]),
        (b"", Semicolons, &[]),
    ] {
        assert_eq!(first_lines(head, &[is]), expected, "{head:?}");
    }
    let long = "é".repeat(200);
    let shown = first_lines(long.as_bytes(), &[]);
    assert_eq!(shown, ["é".repeat(100) + "…"]);
}
