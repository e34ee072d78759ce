//! Text in the cells of CSV files.

/// A spreadsheet runs a cell that starts with one of these as a formula; an apostrophe before it
/// makes it text again (OWASP, CSV injection).
pub fn safe(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']) {
        format!("'{text}")
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::safe;

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
            assert_eq!(safe(text), cell);
        }
    }
}
