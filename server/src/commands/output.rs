//! Prints results to standard output, as text or as one line of JSON.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use domain::printable::{is_control, printable, printable_lines};
use serde::Serialize;

/// How results are printed.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    json: bool,
}

impl Output {
    pub fn new(json: bool) -> Self {
        Self { json }
    }

    pub const fn is_json(self) -> bool {
        self.json
    }

    /// Prints one result. `human` returns the text for a person. An empty text isn't printed.
    pub fn print<T: Serialize>(
        self,
        value: &T,
        human: impl FnOnce(&T) -> String,
    ) -> io::Result<()> {
        let text = if self.json {
            escaped(&serde_json::to_string(value)?)
        } else {
            printable_lines(&human(value))
        };
        if text.is_empty() {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{text}")?;
        stdout.flush()
    }

    /// Prints records in the form `T`. Without JSON, prints a table.
    pub fn list<T: Serialize>(
        self,
        records: Vec<impl Into<T>>,
        columns: &[Column<T>],
    ) -> io::Result<()> {
        let shown: Vec<T> = records.into_iter().map(Into::into).collect();
        self.print(&shown, |shown| table(shown, columns))
    }
}

/// Escapes control characters that JSON allows unescaped in strings.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if is_control(c) {
            // No control character needs more than four digits. Writing into a `String` never
            // fails.
            let _ = write!(text, "\\u{:04x}", u32::from(c));
        } else {
            text.push(c);
        }
    }
    text
}

/// A column of a table: its heading, and the function that returns a record's cell.
pub type Column<T> = (&'static str, fn(&T) -> String);

/// Formats records as a table. Each column is as wide as its widest cell.
pub fn table<T>(records: &[T], columns: &[Column<T>]) -> String {
    let headings = columns.iter().map(|(heading, _)| (*heading).to_owned());
    let mut rows: Vec<Vec<String>> = vec![headings.collect()];
    for record in records {
        // A line break in a cell would break the table.
        let shown = |cell: fn(&T) -> String| printable(&cell(record)).into_owned();
        rows.push(columns.iter().map(|(_, cell)| shown(*cell)).collect());
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns.len()).filter_map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths);
        let padded: Vec<String> = cells.map(|(cell, width)| format!("{cell:<width$}")).collect();
        padded.join("  ").trim_end().to_owned()
    };
    let lines: Vec<String> = rows.iter().map(line).collect();
    lines.join("\n")
}

/// Formats names and values, one pair per line.
pub fn facts(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, value): &(&str, String)| format!("{name:<width$}  {}", printable(value));
    let lines: Vec<String> = rows.iter().map(line).collect();
    lines.join("\n")
}

/// Returns the value, or `-` if there is none.
pub fn or_dash(text: Option<&str>) -> String {
    text.unwrap_or("-").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let columns: [Column<(&str, u8)>; 2] =
            [("NAME", |(name, _)| (*name).to_owned()), ("N", |(_, number)| number.to_string())];
        let rows = [("é", 1), ("longer", 100)];
        assert_eq!(table(&rows, &columns), "NAME    N\né       1\nlonger  100");
        assert_eq!(table(&[], &columns), "NAME  N");
        let rows = [("\u{1b}[1m\n\u{202e}", 1)];
        let shown = "NAME                    N\n\\u{1b}[1m\\u{a}\\u{202e}  1";
        assert_eq!(table(&rows, &columns), shown);
    }

    #[test]
    fn json_means_the_same_without_control_characters() {
        let text = "\u{1b}[1m\n\u{7f}\u{9b}\u{202e}\u{20ac}";
        let json = escaped(&serde_json::to_string(text).unwrap());
        assert!(!json.contains(is_control));
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }
}
