//! `heliograph deposit`.

use std::fmt::Display;
use std::path::Path;

use domain::records::DepositRecord;
use domain::{Money, Reference};
use serde::Serialize;
use service::{Actor, DepositRequest, Error, Refusal, Service};

use super::output::{Column, or_dash};
use super::{CommandError, Output};
use crate::cli::{Deposit, amount};
use crate::json::{Amount, DateTime};

/// The header of a file of payments.
const HEADER: [&str; 3] = ["bank_id", "reference", "amount"];

#[derive(Serialize)]
struct Added {
    status: &'static str,
    bank_id: String,
    reference: String,
    amount: Amount,
    /// True if an earlier call recorded the payment. This call then changed nothing.
    already: bool,
    balance: Option<Amount>,
}

#[derive(Serialize)]
struct Imported {
    credited: usize,
    unmatched: usize,
    skipped: usize,
}

#[derive(Serialize)]
struct Shown {
    bank_id: String,
    reference: String,
    amount: Amount,
    received_at: DateTime,
    assigned_to: Option<Reference>,
}

impl From<DepositRecord> for Shown {
    fn from(record: DepositRecord) -> Self {
        Self {
            bank_id: record.bank_id,
            reference: record.reference,
            amount: Amount(record.amount),
            received_at: DateTime(record.received_at),
            assigned_to: record.assigned_to,
        }
    }
}

const COLUMNS: [Column<Shown>; 5] = [
    ("BANK ID", |deposit| deposit.bank_id.clone()),
    ("REFERENCE", |deposit| deposit.reference.clone()),
    ("AMOUNT", |deposit| deposit.amount.0.to_string()),
    ("RECEIVED", |deposit| deposit.received_at.0.to_table()),
    ("ASSIGNED", |deposit| {
        let reference = deposit.assigned_to.map(|reference| reference.to_string());
        or_dash(reference.as_deref())
    }),
];

pub async fn run(service: &Service, command: Deposit, output: Output) -> Result<(), CommandError> {
    match command {
        Deposit::Add { reference, amount, bank_id } => {
            add(service, bank_id, reference, amount, output).await
        }
        Deposit::Import { file } => import(service, &file, output).await,
        Deposit::Unmatched => {
            let deposits = service.money().unmatched_deposits().await?;
            Ok(output.list(deposits, &COLUMNS)?)
        }
        Deposit::Assign { bank_id, reference } => {
            let record =
                service.money().assign_deposit(&Actor::CommandLine, &bank_id, reference).await?;
            Ok(output.print(&Shown::from(record), |deposit| {
                format!("{} credited to {reference}.", deposit.amount.0)
            })?)
        }
    }
}

async fn add(
    service: &Service,
    bank_id: String,
    reference: String,
    amount: Money,
    output: Output,
) -> Result<(), CommandError> {
    let order = payment(&bank_id, &reference, amount).map_err(CommandError::Refused)?;
    let outcome = service.money().add_deposit(&Actor::CommandLine, &order).await?;
    let added = Added {
        status: outcome.status.as_str(),
        bank_id: order.bank_id,
        reference: order.reference,
        amount: Amount(amount),
        already: outcome.already,
        balance: outcome.balance.map(Amount),
    };
    Ok(output.print(&added, |added| {
        let already = if added.already { " already" } else { "" };
        match added.balance {
            Some(balance) => format!("{}{already}; the balance is {}.", added.status, balance.0),
            None => format!("{}{already}.", added.status),
        }
    })?)
}

async fn import(service: &Service, file: &Path, output: Output) -> Result<(), CommandError> {
    let bytes = std::fs::read(file).map_err(|error| {
        CommandError::Refused(format!("can't read {}: {error}", file.display()))
    })?;
    // Spreadsheets put a byte order mark before the first cell.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let (starts, orders) = read_orders(file, bytes).map_err(CommandError::Refused)?;
    let refused = |error: Error, end: &str| match error.refusal() {
        Some(Refusal::Order { index, refusal }) => {
            CommandError::Refused(at_line(file, line(bytes, starts[*index]), refusal, end))
        }
        _ => CommandError::Service(error),
    };
    let checked = service.money().check_deposits(&orders).await;
    checked.map_err(|error| refused(error, NONE_CREDITED))?;
    let imported = service.money().import_deposits(&Actor::CommandLine, &orders).await;
    // Fails here if somebody has entered other data under a bank ID since the check.
    let outcome = imported.map_err(|error| refused(error, SOME_CREDITED))?;
    let imported = Imported {
        credited: outcome.credited,
        unmatched: outcome.unmatched,
        skipped: outcome.skipped,
    };
    Ok(output.print(&imported, |imported| {
        format!(
            "{} credited, {} unmatched, {} skipped because they were credited before.",
            imported.credited, imported.unmatched, imported.skipped
        )
    })?)
}

const NONE_CREDITED: &str = "no line was credited";
const SOME_CREDITED: &str =
    "earlier lines may be credited: correct this line and import the file again, which skips them";

fn bad_line(file: &Path, line: usize, what: &dyn Display) -> String {
    at_line(file, line, what, NONE_CREDITED)
}

fn at_line(file: &Path, line: usize, what: &dyn Display, end: &str) -> String {
    let shown = file.display();
    // Some of the errors already end with a full stop.
    let what = what.to_string();
    let what = what.trim_end_matches('.');
    format!("{shown}, line {line}: {what}; {end}")
}

/// Reads a file of payments. Returns the byte position and the content of each. A single invalid
/// line rejects the whole file.
fn read_orders(file: &Path, bytes: &[u8]) -> Result<(Vec<u64>, Vec<DepositRequest>), String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    let (mut starts, mut orders) = (Vec::new(), Vec::new());
    let mut header_seen = false;
    for record in reader.records() {
        let position = match &record {
            Ok(record) => record.position(),
            Err(error) => error.position(),
        };
        let start = position.map_or(0, csv::Position::byte);
        let bad = |what: &str| Err(bad_line(file, line(bytes, start), &what));
        let Ok(record) = record else {
            return bad("not a readable CSV line");
        };
        let cells: Vec<&str> = record.iter().map(str::trim).collect();
        if cells == [""] {
            continue;
        }
        if !header_seen {
            header_seen = true;
            if cells != HEADER {
                return bad("the header must be bank_id,reference,amount");
            }
            continue;
        }
        match order(&cells) {
            Ok(order) => {
                starts.push(start);
                orders.push(order);
            }
            Err(what) => return bad(&what),
        }
    }
    if header_seen {
        Ok((starts, orders))
    } else {
        Err(format!("{} is empty; it needs the header bank_id,reference,amount", file.display()))
    }
}

/// Returns the line number of the record at this byte. The CSV reader's position of a record is
/// before the blank lines that precede it.
fn line(bytes: &[u8], start: u64) -> usize {
    let start = usize::try_from(start).map_or(bytes.len(), |start| start.min(bytes.len()));
    let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let blank = bytes[start..].iter().take_while(|byte| is_end(byte)).count();
    let before = &bytes[..start + blank];
    // CR LF is one line ending.
    let pairs = before.windows(2).filter(|pair| pair == b"\r\n").count();
    1 + before.iter().filter(|byte| is_end(byte)).count() - pairs
}

fn order(cells: &[&str]) -> Result<DepositRequest, String> {
    let [bank_id, reference, sum] = *cells else {
        return Err("a line has three cells: bank_id,reference,amount".to_owned());
    };
    payment(bank_id, reference, amount(sum)?)
}

/// Builds a payment from typed or exported texts, without the white space around them.
fn payment(bank_id: &str, reference: &str, amount: Money) -> Result<DepositRequest, String> {
    let (bank_id, reference) = (bank_id.trim(), reference.trim());
    if bank_id.is_empty() || reference.is_empty() {
        return Err("bank_id and reference must not be empty".to_owned());
    }
    Ok(DepositRequest { bank_id: bank_id.to_owned(), reference: reference.to_owned(), amount })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_on_the_line_after_the_blank_ones() {
        let bytes = b"a\r\n\r\nb\n\rc\r\rd";
        for (start, expected) in [(0, 1), (1, 3), (3, 3), (5, 3), (6, 5), (8, 5), (9, 7), (99, 7)] {
            assert_eq!(line(bytes, start), expected, "{start}");
        }
    }
}
