//! Uploaded files: finding their rows, and finding the bad ones.

use domain::bulk::ERRORS_MAX;
use domain::{
    BadFile, BulkError, BulkLimits, BulkMode, BulkParser, BulkRow, BulkWriting, Kind, Number,
    Reason,
};
use proptest::prelude::*;

use crate::seeded;

const LIMITS: BulkLimits =
    BulkLimits { rows_max: 1_000, message_pages_max: 1, replace_characters: false };
/// The number of characters in the longest message.
const CHARS: usize = 160;

/// The result for a file: its rows as number and message, or its bad rows as line and reason.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    Rows(Vec<(String, Option<String>)>),
    Bad(Vec<(u64, &'static str)>, u64),
    TooManyRows,
}

fn rows(expected: &[(&str, &str)]) -> Found {
    let own = |(number, message): &(&str, &str)| ((*number).into(), Some((*message).into()));
    Found::Rows(expected.iter().map(own).collect())
}

fn bad(expected: &[(u64, &'static str)]) -> Found {
    Found::Bad(expected.to_vec(), expected.len() as u64)
}

fn shown(row: &BulkRow) -> (String, Option<String>) {
    let message = row.message.as_ref().map(|text| text.as_str().to_owned());
    (row.number.digits().to_owned(), message)
}

/// Parses a file in the given pieces.
fn read<'a>(mode: BulkMode, limits: BulkLimits, pieces: impl Iterator<Item = &'a [u8]>) -> Found {
    let mut parser = BulkParser::new(mode, BulkWriting::Plain, limits);
    let mut found = Vec::new();
    let mut take = |row: BulkRow| found.push(shown(&row));
    for piece in pieces {
        if parser.push(piece, &mut take).is_err() {
            return Found::TooManyRows;
        }
    }
    match parser.finish(&mut take) {
        Ok(count) => {
            assert_eq!(count, found.len() as u64);
            Found::Rows(found)
        }
        Err(BulkError::TooManyRows) => Found::TooManyRows,
        Err(BulkError::Bad(BadFile { errors, error_count, .. })) => {
            assert!(errors.len() as u64 == error_count || errors.len() == ERRORS_MAX);
            let errors = errors.iter().map(|bad| (bad.line, bad.reason.as_str()));
            Found::Bad(errors.collect(), error_count)
        }
    }
}

/// Parses a file at once, and again byte by byte. The results must be the same.
fn parse(mode: BulkMode, file: &[u8]) -> Found {
    let found = read(mode, LIMITS, std::iter::once(file));
    assert_eq!(read(mode, LIMITS, file.chunks(1)), found, "byte by byte");
    found
}

fn one_to_one(file: impl AsRef<[u8]>) -> Found {
    parse(BulkMode::OneToOne, file.as_ref())
}

#[test]
fn one_to_one_rows_are_number_comma_message() {
    let hi = [("58000000", "Hi"), ("27820000000", "Ho")];
    for (file, expected) in [
        ("58000000,Hi\n+27820000000,Ho\n", &hi[..]),
        ("58000000,Hi\r\n27820000000,Ho\r\n", &hi),
        // Both line ends, and no line end after the last row.
        ("58000000,Hi\r\n27820000000,Ho", &hi),
        ("\u{feff}58000000,Hi\n27820000000,Ho", &hi),
        // Trailing blank lines.
        ("58000000,Hi\n27820000000,Ho\n\n\r\n\n", &hi),
        // Commas, quotes and spaces belong to the message.
        ("58000000,a, b,,\n", &[("58000000", "a, b,,")]),
        ("58000000, \"a\"\n", &[("58000000", " \"a\"")]),
        ("58000000,say \"a\"\n", &[("58000000", "say \"a\"")]),
        ("58000000,\u{feff}a\n", &[("58000000", "\u{feff}a")]),
        // A formula is ordinary text.
        ("58000000,=cmd()\n", &[("58000000", "=cmd()")]),
    ] {
        assert_eq!(one_to_one(file), rows(expected), "{file:?}");
    }
}

#[test]
fn quoted_messages_can_hold_any_character() {
    for (file, message) in [
        ("58000000,\"a\"\n", "a"),
        ("58000000,\"a\"\r\n", "a"),
        ("58000000,\"a\"", "a"),
        ("58000000,\"a,b\"\n", "a,b"),
        ("58000000,\"say \"\"a\"\"\"\n", "say \"a\""),
        ("58000000,\"\"\"\"\n", "\""),
        ("58000000,\"a\nb\"\n", "a\nb"),
        ("58000000,\"a\r\nb\rc\"\n", "a\r\nb\rc"),
        ("58000000,\"\n\n\"\n", "\n\n"),
        ("58000000,\" \"\n", " "),
    ] {
        assert_eq!(one_to_one(file), rows(&[("58000000", message)]), "{file:?}");
    }
    // The lines of a multi-line message count in the line numbers below.
    assert_eq!(
        one_to_one("58000000,\"a\nb\"\n58000000,ok\nx,y\n58000000,\"\n\"\r\nx"),
        bad(&[(4, "invalid_number"), (7, "invalid_number")])
    );
}

#[test]
fn bad_rows_are_named_by_line_and_reason() {
    const NUMBER: &str = "invalid_number";
    const MESSAGE: &str = "invalid_message";
    for (file, expected) in [
        // A header line.
        ("number,message\n58000000,a\n", &[(1, NUMBER)][..]),
        // Blank lines between rows are bad rows; trailing ones aren't.
        ("\n58000000,a\n\r\n\n58000000,a\n\n", &[(1, NUMBER), (3, NUMBER), (4, NUMBER)]),
        (" \n58000000,a\n", &[(1, NUMBER)]),
        // Number only, comma only, message only.
        ("58000000\n", &[(1, MESSAGE)]),
        ("58000000,\r\n", &[(1, MESSAGE)]),
        ("58000000,\"\"\r\n", &[(1, MESSAGE)]),
        (",\n", &[(1, NUMBER)]),
        (",a\n", &[(1, NUMBER)]),
        // Characters that no number may have, such as a leading space.
        (" 58000000,a\n", &[(1, NUMBER)]),
        ("58000000 ,a\n", &[(1, NUMBER)]),
        ("\"58000000\",a\n", &[(1, NUMBER)]),
        ("58 00,a\n5\u{0},a\n", &[(1, NUMBER), (2, NUMBER)]),
        ("\u{feff}\u{feff}58000000,a\n", &[(1, NUMBER)]),
        ("58000000,a\n\u{feff}58000000,a\n", &[(2, NUMBER)]),
        // A CR alone doesn't end a line.
        ("58000000,a\r58000000,b\r", &[(1, MESSAGE)]),
        ("58000000,a\r\r\n", &[(1, MESSAGE)]),
        ("58000000,a\r", &[(1, MESSAGE)]),
        ("58000000\r58000000\n", &[(1, NUMBER)]),
        ("58000000,a\n\r", &[(2, NUMBER)]),
        ("58000000,a\u{0}b\n", &[(1, MESSAGE)]),
        ("58000000,\"a\u{0}b\"\n", &[(1, MESSAGE)]),
        // Several faults: the number takes precedence over the message.
        ("x,\"a\nb\"\nx,\"\n58000000,ok\n", &[(1, NUMBER), (3, NUMBER)]),
    ] {
        assert_eq!(one_to_one(file), bad(expected), "{file:?}");
    }
}

#[test]
fn a_wrong_quote_makes_one_bad_row_at_most() {
    const MESSAGE: &str = "invalid_message";
    const ENCODING: &str = "invalid_encoding";
    let long = "a".repeat(CHARS);
    for (file, expected) in [
        // Text after the closing quote: parsing continues after that line.
        (
            "58000000,\"a\"b\n58000000,\"a\" \nx\n".into(),
            vec![(1, MESSAGE), (2, MESSAGE), (3, "invalid_number")],
        ),
        ("58000000,\"a\nb\"c\nx".into(), vec![(1, MESSAGE), (3, "invalid_number")]),
        ("58000000,\"a\"\r".into(), vec![(1, MESSAGE)]),
        ("58000000,\"a\"\rb\n".into(), vec![(1, MESSAGE)]),
        ("58000000,\"\"a\"\"\n".into(), vec![(1, MESSAGE)]),
        // Never closed: the rows below are parsed separately, with their own quotes.
        ("58000000,\"a\n58000000,b\nx,c\n".into(), vec![(1, MESSAGE), (3, "invalid_number")]),
        ("58000000,\"a".into(), vec![(1, MESSAGE)]),
        ("58000000,\"".into(), vec![(1, MESSAGE)]),
        ("58000000,\"\"\"".into(), vec![(1, MESSAGE)]),
        // Not closed within the limit: the late closing quote is in a row of its own.
        (
            format!("58000000,\"a\n58000000,{long}\nx\",b\n"),
            vec![(1, MESSAGE), (3, "invalid_number")],
        ),
        // All in one line: too long, whether closed or not.
        (format!("58000000,\"{long}a\"\n58000000,a\n"), vec![(1, "message_too_long")]),
        (
            format!("58000000,\"{long}aaaaaaaaa\nx"),
            vec![(1, "message_too_long"), (2, "invalid_number")],
        ),
        // U+FFFD is valid UTF-8. Below, an invalid byte takes precedence over the open quote.
        ("58000000,\"a\u{fffd}\n".into(), vec![(1, MESSAGE)]),
    ] {
        assert_eq!(one_to_one(&file), bad(&expected), "{file:?}");
    }
    assert_eq!(one_to_one(b"58000000,\"a\xff\n58000000,a\n"), bad(&[(1, ENCODING)]));
}

#[test]
fn messages_have_a_limit_in_characters() {
    for wide in ["a", "\u{e9}", "\u{1f600}"] {
        let longest = wide.repeat(CHARS);
        for file in [format!("58000000,{longest}\r\n"), format!("58000000,\"{longest}\"\r\n")] {
            assert_eq!(one_to_one(&file), rows(&[("58000000", longest.as_str())]));
        }
        for file in
            [format!("58000000,{longest}{wide}\n"), format!("58000000,\"{longest}{wide}\"\n")]
        {
            assert_eq!(one_to_one(&file), bad(&[(1, "message_too_long")]));
        }
    }
    // A doubled quote counts once.
    let quotes = "\"".repeat(CHARS);
    let file = format!("58000000,\"{quotes}{quotes}\"\n");
    assert_eq!(one_to_one(&file), rows(&[("58000000", quotes.as_str())]));
    let file = format!("58000000,\"{quotes}{quotes}\"\"\"\n");
    assert_eq!(one_to_one(&file), bad(&[(1, "message_too_long")]));
}

#[test]
fn invalid_utf8_makes_a_bad_row() {
    const ENCODING: &str = "invalid_encoding";
    for (file, expected) in [
        (&b"58000000,\xff\n58000000,a\n"[..], &[(1, ENCODING)][..]),
        (b"58000000,a\xc3\n58000000,\xa9\n", &[(1, ENCODING), (2, ENCODING)]),
        (b"58000000,\xed\xa0\x80\n", &[(1, ENCODING)]),
        (b"58000000,\"\xff\"\n", &[(1, ENCODING)]),
        (b"\xff,a\n", &[(1, ENCODING)]),
        (b"\xef\xbb", &[(1, ENCODING)]),
        (b"\xef\xbb58000000,a", &[(1, ENCODING)]),
    ] {
        assert_eq!(one_to_one(file), bad(expected), "{file:?}");
        // Both modes check the encoding first.
        let Found::Bad(lines, _) = parse(BulkMode::OneToMany, file) else {
            panic!("taken: {file:?}");
        };
        assert_eq!(lines[0], expected[0], "{file:?}");
    }
    let utf16 = |text: &str, to_bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        text.encode_utf16().flat_map(to_bytes).collect()
    };
    for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
        let marked = utf16("\u{feff}58000000,a\n", to_bytes);
        let plain = utf16("58000000,a\n", to_bytes);
        for mode in [BulkMode::OneToOne, BulkMode::OneToMany] {
            assert_eq!(parse(mode, &marked), bad(&[(1, ENCODING)]));
            assert_eq!(parse(mode, &plain), bad(&[(1, ENCODING)]));
        }
    }
}

#[test]
fn one_to_many_rows_are_numbers() {
    let numbers = |expected: &[&str]| {
        Found::Rows(expected.iter().map(|number| ((*number).into(), None)).collect())
    };
    for (file, expected) in [
        ("58000000\n+27820000000\n", numbers(&["58000000", "27820000000"])),
        ("\u{feff}58000000\r\n1234\r\n\r\n", numbers(&["58000000", "1234"])),
        ("58000000", numbers(&["58000000"])),
        ("58000000,\n58000000,a\n1234\n", bad(&[(1, "invalid_number"), (2, "invalid_number")])),
        ("number\n58000000\n", bad(&[(1, "invalid_number")])),
        ("58000000\n\n58000000", bad(&[(2, "invalid_number")])),
        ("58000000\r58000000\r", bad(&[(1, "invalid_number")])),
        (" 58000000\n\"58000000\"\n", bad(&[(1, "invalid_number"), (2, "invalid_number")])),
        ("5,\"\n58000000\n", bad(&[(1, "invalid_number")])),
    ] {
        assert_eq!(parse(BulkMode::OneToMany, file.as_bytes()), expected, "{file:?}");
    }
}

#[test]
fn a_file_without_rows_is_refused() {
    for file in ["", "\n", "\r\n\n\n", "\u{feff}", "\u{feff}\n"] {
        for mode in [BulkMode::OneToOne, BulkMode::OneToMany] {
            assert_eq!(parse(mode, file.as_bytes()), bad(&[(1, "invalid_file")]), "{file:?}");
        }
    }
}

#[test]
fn an_endless_line_is_one_bad_row() {
    let long = "9".repeat(10_000_000);
    for (start, reason) in [
        ("", "invalid_number"),
        ("58000000,", "message_too_long"),
        ("58000000,\"", "message_too_long"),
        ("\u{1},", "invalid_number"),
    ] {
        for end in ["\n58000000,a\nx\n", "\r\n58000000,a\nx", "\"\n58000000,a\nx"] {
            let file = format!("{start}{long}{end}");
            let expected = bad(&[(1, reason), (3, "invalid_number")]);
            let whole = read(BulkMode::OneToOne, LIMITS, std::iter::once(file.as_bytes()));
            assert_eq!(whole, expected);
            let pieces = read(BulkMode::OneToOne, LIMITS, file.as_bytes().chunks(999));
            assert_eq!(pieces, expected);
        }
    }
    let file = [b"58000000,\xff", long.as_bytes()].concat();
    let found = read(BulkMode::OneToOne, LIMITS, std::iter::once(&file[..]));
    assert_eq!(found, bad(&[(1, "invalid_encoding")]));
}

#[test]
fn open_quotes_are_not_read_over_and_over() {
    // If the parser searched for each closing quote up to the message limit, this would be 10 GB of
    // work.
    let limits =
        BulkLimits { rows_max: u64::MAX, message_pages_max: 10_000, replace_characters: false };
    for line in ["58000000,\"\"\"a\n", "58000000,\"\"a\n", "58000000,\"a\"\"\n"] {
        let file = line.repeat(200_000);
        let Found::Bad(_, count) = read(BulkMode::OneToOne, limits, file.as_bytes().chunks(8192))
        else {
            panic!("taken: {line:?}");
        };
        assert!(count >= 100_000, "{line:?}: {count}");
    }
}

#[test]
fn rows_have_a_limit_good_or_bad() {
    let limits = BulkLimits { rows_max: 3, message_pages_max: 1, replace_characters: false };
    for (file, too_many) in [
        ("1111\n2222\n3333\n", false),
        ("1111\n2222\n3333\n\n\n", false),
        ("1111\n2222\n3333\n4444\n", true),
        ("1111\n2222\n3333\n4444", true),
        ("x\nx\nx\nx\n", true),
        ("x\nx\nx\n", false),
        ("1111\n\n\n4444\n", true),
        ("1111\n\n4444\n", false),
    ] {
        for size in [1, 5, 100] {
            let pieces = file.as_bytes().chunks(size);
            let found = read(BulkMode::OneToMany, limits, pieces);
            assert_eq!(found == Found::TooManyRows, too_many, "{file:?}");
        }
    }
}

#[test]
fn the_first_bad_rows_are_listed_and_all_are_counted() {
    let file = "x\n".repeat(30) + "\n\n\n1111\n";
    let lines: Vec<_> = (1..=20).map(|line| (line, "invalid_number")).collect();
    assert_eq!(parse(BulkMode::OneToMany, file.as_bytes()), Found::Bad(lines, 33));
    let file = "1111\n".to_owned() + &"\n".repeat(30) + "1111\n";
    let lines: Vec<_> = (2..=21).map(|line| (line, "invalid_number")).collect();
    assert_eq!(parse(BulkMode::OneToMany, file.as_bytes()), Found::Bad(lines, 30));
}

#[test]
fn in_a_form_a_space_before_a_number_is_read_as_plus() {
    let file =
        " 58000000,a\n 4915112345678,\" b\n 58000000,c\"\n58000000, d\n  58000000,e\n 58000000,\"f";
    for size in 1..file.len() {
        let mut parser = BulkParser::new(BulkMode::OneToOne, BulkWriting::UrlDecoded, LIMITS);
        let mut found = Vec::new();
        let mut take = |row: BulkRow| found.push((row.number.kind(), shown(&row).1.unwrap()));
        for piece in file.as_bytes().chunks(size) {
            parser.push(piece, &mut take).unwrap();
        }
        let Err(BulkError::Bad(bad)) = parser.finish(&mut take) else {
            panic!("taken");
        };
        let expected = [
            (Kind::International, "a"),
            (Kind::International, " b\n 58000000,c"),
            (Kind::Local, " d"),
        ];
        let expected = expected.map(|(kind, message)| (kind, message.to_owned()));
        assert_eq!(found, expected, "{size}");
        // One leading space is one plus. It isn't a fault, even in a row whose quote isn't closed.
        let errors: Vec<_> = bad.errors.iter().map(|bad| (bad.line, bad.reason)).collect();
        let expected = [(5, Reason::InvalidNumber), (6, Reason::InvalidMessage)];
        assert_eq!(errors, expected, "{size}");
    }
}

#[test]
fn details_say_what_to_do_and_quote_nothing() {
    let mut parser = BulkParser::new(BulkMode::OneToOne, BulkWriting::Plain, LIMITS);
    parser.push(b"QXZ,QXZ\n58000000,\"QXZ\n58000000\n", &mut |_| {}).unwrap();
    let Err(BulkError::Bad(file)) = parser.finish(&mut |_| {}) else {
        panic!("taken");
    };
    assert_eq!(file.error_count, 3);
    for bad in &file.errors {
        assert!(bad.detail.ends_with('.') && !bad.detail.contains(['Q', 'X', 'Z']), "{bad:?}");
    }
    assert_eq!(file.errors[0].reason, Reason::InvalidNumber);
}

/// Returns the details of a file's bad rows.
fn details(mode: BulkMode, file: &str) -> Vec<&'static str> {
    let mut parser = BulkParser::new(mode, BulkWriting::Plain, LIMITS);
    parser.push(file.as_bytes(), &mut |_| {}).unwrap();
    let Err(BulkError::Bad(bad)) = parser.finish(&mut |_| {}) else {
        panic!("taken: {file:?}");
    };
    for error in &bad.errors {
        assert_eq!(error.reason, Reason::InvalidNumber, "{file:?}");
    }
    bad.errors.iter().map(|error| error.detail).collect()
}

#[test]
fn a_number_that_is_written_wrongly_is_told_how() {
    for (row, words) in [
        ("71234567;Hello", "semicolon"),
        ("71234567;Hello, you", "semicolon"),
        ("\"71234567\";\"Hello\"", "semicolon"),
        ("71234567\tHello", "tab"),
        ("\"71234567\",\"Hello\"", "in quotes"),
        ("\u{201c}71234567\u{201d},Hello", "in quotes"),
        ("'71234567,Hello", "in quotes"),
        ("=\"71234567\",Hello", "formula"),
        ("=71234567,Hello", "formula"),
        ("71234567 ,Hello", "space before or after"),
        (" 71234567,Hello", "space before or after"),
        ("71234567\u{200b},Hello", "invisible"),
        ("\u{feff}71234567,Hello", "invisible"),
        ("71234567\u{a0},Hello", "invisible"),
        ("7123-4567,Hello", "hyphens"),
        ("7123 4567,Hello", "hyphens"),
        ("+266 (7123) 4567,Hello", "hyphens"),
        ("71234567.0,Hello", "hyphens"),
        ("7.12E+07,Hello", "exponent"),
        ("7e7,Hello", "exponent"),
        ("71234567\rHello", "carriage return"),
        (",71234567,Hello", "Remove empty columns"),
        ("  ,Hello", "only spaces"),
        ("712,Hello", "4 to 15 digits"),
        ("1234567890123456,Hello", "4 to 15 digits"),
        ("٧١٢٣٤٥٦٧,Hello", "other than 0 to 9"),
        ("number,message", "header lines"),
        ("Number;Message", "header lines"),
        ("?,Hello", "doesn't start with a number"),
        ("++71234567,Hello", "doesn't start with a number"),
    ] {
        let file = format!("58000000,ok\n{row}\n");
        let details = details(BulkMode::OneToOne, &file);
        assert_eq!(details.len(), 1, "{row:?}");
        assert!(details[0].contains(words), "{row:?}: {}", details[0]);
    }
    for (row, words) in [
        ("71234567,", "A comma follows"),
        ("71234567,Hello", "A comma follows"),
        ("71234567;", "semicolon"),
        (",71234567", "Remove empty columns"),
        ("\"71234567\"", "in quotes"),
        ("71234567 ", "space before or after"),
        ("71234567\r71234568", "carriage return"),
        ("number", "header lines"),
    ] {
        let details = details(BulkMode::OneToMany, &format!("58000000\n{row}\n"));
        assert_eq!(details.len(), 1, "{row:?}");
        assert!(details[0].contains(words), "{row:?}: {}", details[0]);
    }
}

/// Writes a row like a program that knows the format.
fn write(number: &str, message: &str, line_end: &str) -> String {
    if message.starts_with('"') || message.contains(['\n', '\r']) {
        format!("{number},\"{}\"{line_end}", message.replace('"', "\"\""))
    } else {
        format!("{number},{message}{line_end}")
    }
}

fn any_message() -> impl Strategy<Value = String> {
    let symbols = "a,\"\n\r é\u{1f600}=".chars().collect::<Vec<char>>();
    prop::collection::vec(prop::sample::select(symbols), 1..=CHARS)
        .prop_map(|chars| chars.into_iter().collect())
}

/// Bytes that resemble a file.
fn nearly_a_file() -> impl Strategy<Value = Vec<u8>> {
    let parts: [&[u8]; 14] = [
        b"58000000",
        b"+27820000000",
        b",",
        b"\"",
        b"\"\"",
        b"\n",
        b"\r\n",
        b"\r",
        b"a",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\0",
        b"\xc3\xa9",
        b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ];
    prop::collection::vec(prop::sample::select(parts.to_vec()), 0..60)
        .prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(seeded(1_000))]

    #[test]
    fn written_rows_are_read_back(
        rows in prop::collection::vec((r"\+?[0-9]{4,15}", any_message()), 1..20),
        marked in any::<bool>(),
        line_end in prop::sample::select(vec!["\n", "\r\n"]),
        last_end in any::<bool>(),
        size in 1..300_usize,
    ) {
        let mut file = if marked { "\u{feff}".to_owned() } else { String::new() };
        for (number, message) in &rows {
            file.push_str(&write(number, message, line_end));
        }
        if !last_end {
            file.truncate(file.len() - line_end.len());
        }
        let expected = rows.iter().map(|(number, message)| {
            (Number::parse(number).unwrap().digits().to_owned(), Some(message.clone()))
        });
        let found = read(BulkMode::OneToOne, LIMITS, file.as_bytes().chunks(size));
        prop_assert_eq!(found, Found::Rows(expected.collect()));
    }

    #[test]
    fn pieces_change_no_outcome_and_lines_are_in_the_file(
        file in prop_oneof![nearly_a_file(), prop::collection::vec(any::<u8>(), 0..400)],
        cuts in prop::collection::vec(1..40_usize, 1..20),
        many in any::<bool>(),
    ) {
        let mode = if many { BulkMode::OneToMany } else { BulkMode::OneToOne };
        let whole = read(mode, LIMITS, std::iter::once(&file[..]));
        let mut pieces = Vec::new();
        let mut rest = &file[..];
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        prop_assert_eq!(&read(mode, LIMITS, pieces.into_iter()), &whole);
        prop_assert_eq!(&read(mode, LIMITS, file.chunks(1)), &whole);
        if let Found::Bad(errors, _) = whole {
            let lines = file.split(|&byte| byte == b'\n').count() as u64;
            prop_assert!(errors.iter().all(|(line, _)| (1..=lines).contains(line)));
            prop_assert!(errors.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }
}
