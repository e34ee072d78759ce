//! Reports as CSV (RFC 4180), for spreadsheets. The API and the portal write the same columns.

use std::iter;

use domain::Timestamp;
use domain::records::MessageRecord;

/// A column of a report: its name, and its cell for a message, given the installation's currency.
/// Absent values are empty cells.
struct Column {
    name: &'static str,
    cell: fn(&MessageRecord, &str) -> String,
}

/// All columns, in the order of the fields of a report in JSON.
const COLUMNS: [Column; 18] = [
    column("transid", |message, _| message.transid.to_string()),
    column("requestid", |message, _| text(message.requestid.as_ref())),
    column("batchid", |message, _| text(message.batchid.map(|id| id.to_string()).as_ref())),
    column("number", |message, _| message.number.clone()),
    column("kind", |message, _| message.shown_kind().to_owned()),
    column("sender", |message, _| text(message.sender.as_ref())),
    column("message", |message, _| message.message.clone()),
    column("status", |message, _| message.status.as_str().to_owned()),
    column("pages", |message, _| message.pages.to_string()),
    column("segments", |message, _| message.segments.to_string()),
    column("cost", |message, _| message.cost.to_string()),
    column("released", |message, _| message.released.to_string()),
    column("currency", |_, currency| currency.to_owned()),
    column("test", |message, _| message.test.to_string()),
    column("error", |message, _| text(message.error.as_ref())),
    column("created_at", |message, _| message.created_at.to_string()),
    column("submitted_at", |message, _| time(message.submitted_at)),
    column("final_at", |message, _| time(message.final_at)),
];

const fn column(name: &'static str, cell: fn(&MessageRecord, &str) -> String) -> Column {
    Column { name, cell }
}

fn text(text: Option<&String>) -> String {
    text.cloned().unwrap_or_default()
}

fn time(at: Option<Timestamp>) -> String {
    at.map(|at| at.to_string()).unwrap_or_default()
}

/// Returns the names of the columns, in order.
pub fn names() -> [&'static str; COLUMNS.len()] {
    COLUMNS.map(|column| column.name)
}

pub fn row(message: &MessageRecord, currency: &str) -> [String; COLUMNS.len()] {
    COLUMNS.map(|column| safe((column.cell)(message, currency)))
}

/// Returns a line with the names of the columns, and a line for each row.
///
/// # Errors
/// If a line can't be written.
pub fn file<const N: usize>(
    names: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> Result<Vec<u8>, csv::Error> {
    write(iter::once(names.map(str::to_owned)).chain(rows))
}

pub fn write<const N: usize>(
    lines: impl Iterator<Item = [String; N]>,
) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .quote_style(csv::QuoteStyle::Never)
        .from_writer(Vec::new());
    for line in lines {
        writer.write_record(line.map(quoted))?;
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}

/// Quotes a cell that contains a separator, including those that spreadsheets use only in some
/// countries. The text after an unquoted separator would be a cell of its own, and perhaps a
/// formula.
fn quoted(cell: String) -> String {
    if cell.contains([',', ';', '\t', '|', '"', '\r', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell
    }
}

/// Makes a cell safe for spreadsheets. A cell that starts with one of these characters runs as a
/// formula. With an apostrophe in front, it is text (OWASP, CSV injection).
pub fn safe(text: String) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']) {
        format!("'{text}")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{safe, write};

    #[test]
    fn cells_with_any_separator_are_quoted() {
        let line = ["Hi;=1+1", "a\tb", "a|b", "a,b", "say \"Hi\"", "a b"].map(str::to_owned);
        let file = write([line].into_iter()).unwrap();
        assert_eq!(
            String::from_utf8(file).unwrap(),
            "\"Hi;=1+1\",\"a\tb\",\"a|b\",\"a,b\",\"say \"\"Hi\"\"\",a b\r\n"
        );
    }

    #[test]
    fn formulas_are_defused() {
        for (text, cell) in [
            ("=1+1", "'=1+1"),
            ("+26657000001", "'+26657000001"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("-2", "'-2"),
            ("\t=1", "'\t=1"),
            ("1=1", "1=1"),
            ("", ""),
        ] {
            assert_eq!(safe(text.to_owned()), cell);
        }
    }
}
