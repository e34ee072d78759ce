//! `heliograph copy`.

use std::path::Path;

use service::{Clock, Copied, CopiedSum, CopiedTable, Service};

use super::output::table;
use super::{CommandError, Output};
use crate::config::{Settings, read_secret};
use crate::config_error::ConfigError;
use crate::json::{Amount, shown};

shown! {
    /// The result of a copy as the command line shows it.
    struct Shown from copied: Copied {
        tables: Vec<Rows> = copied.tables.into_iter().map(Rows::from).collect(),
        ledger: Vec<Sum> = copied.sums.into_iter().map(Sum::from).collect(),
        accounts: usize = copied.accounts,
        upload_rows: i64 = copied.upload_rows,
        /// The result of the check that ran on both sides.
        ok: bool = true,
    }
}

shown! {
    struct Rows from table: CopiedTable {
        table: &'static str = table.name,
        from: i64 = table.from,
        to: i64 = table.to,
    }
}

shown! {
    struct Sum from sum: CopiedSum {
        name: String = sum.name,
        from: Amount = Amount(sum.from),
        to: Amount = Amount(sum.to),
    }
}

/// Returns the URL of the new database.
pub fn target(
    settings: &Settings,
    to: Option<&str>,
    to_file: Option<&Path>,
) -> Result<String, ConfigError> {
    let (name, url) = match to_file {
        Some(file) => ("--to-file", read_secret(file, "--to-file")?),
        None => ("--to", to.unwrap_or_default().to_owned()),
    };
    settings.allow_cleartext.check_database(name, &url)?;
    Ok(url)
}

pub async fn run(
    settings: &Settings,
    from: &str,
    to: &str,
    output: Output,
) -> Result<(), CommandError> {
    let tables = settings.limits.message_tables;
    let copied = Service::copy(from, to, &settings.data_dir, tables, &Clock::system()).await?;
    Ok(output.print(&Shown::from(copied), human)?)
}

fn human(shown: &Shown) -> String {
    let tables = table(
        &shown.tables,
        &[
            ("TABLE", |rows| rows.table.to_owned()),
            ("ROWS FROM", |rows| rows.from.to_string()),
            ("ROWS TO", |rows| rows.to.to_string()),
        ],
    );
    let ledger = table(
        &shown.ledger,
        &[
            ("LEDGER", |sum| sum.name.clone()),
            ("FROM", |sum| sum.from.0.to_string()),
            ("TO", |sum| sum.to.0.to_string()),
        ],
    );
    format!(
        "{tables}\n\n{ledger}\n\n\
         All invariants hold on both sides. The balances of {} ledger accounts match. {} rows of \
         uploads were moved.\n\
         Now set HELIOGRAPH_DATABASE_URL to the new database and start. Keep the old file, but \
         never serve it again: its waiting messages would be sent twice.",
        shown.accounts, shown.upload_rows,
    )
}
