//! `heliograph deposit`.

use std::path::Path;

use domain::Money;
use domain::Reference;
use serde::Serialize;
use service::{Actor, DepositOrder, DepositRecord, Service};

use super::output::{or_dash, table};
use super::{CommandError, Output};
use crate::cli::{Deposit, amount};
use crate::json::{Amount, Moment};

/// The first line of a file of payments.
const HEADER: [&str; 3] = ["bank_id", "reference", "amount"];

#[derive(Serialize)]
struct Added {
    status: &'static str,
    bank_id: String,
    reference: String,
    amount: Amount,
    /// Credited by an earlier call; this one changed nothing.
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
    received_at: Moment,
    assigned_to: Option<Reference>,
}

impl From<DepositRecord> for Shown {
    fn from(record: DepositRecord) -> Self {
        Self {
            bank_id: record.bank_id,
            reference: record.reference,
            amount: Amount(record.amount),
            received_at: Moment(record.received_at),
            assigned_to: record.assigned_to,
        }
    }
}

pub async fn run(service: &Service, command: Deposit, output: Output) -> Result<(), CommandError> {
    match command {
        Deposit::Add {
            reference,
            amount,
            bank_id,
        } => add(service, bank_id, reference, amount, output).await,
        Deposit::Import { file } => import(service, &file, output).await,
        Deposit::Unmatched => unmatched(service, output).await,
        Deposit::Assign { bank_id, reference } => {
            let record = service
                .assign_deposit(&Actor::CommandLine, &bank_id, reference)
                .await?;
            output.print(&Shown::from(record), |deposit| {
                format!("{} credited to {reference}.", deposit.amount.0)
            })?;
            Ok(())
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
    let order = DepositOrder {
        bank_id,
        reference,
        amount,
    };
    let outcome = service.add_deposit(&Actor::CommandLine, &order).await?;
    let added = Added {
        status: outcome.status.as_str(),
        bank_id: order.bank_id,
        reference: order.reference,
        amount: Amount(amount),
        already: outcome.already,
        balance: outcome.balance.map(Amount),
    };
    output.print(&added, |added| {
        let already = if added.already { " already" } else { "" };
        match added.balance {
            Some(balance) => format!("{}{already}; the balance is {}.", added.status, balance.0),
            None => format!("{}{already}.", added.status),
        }
    })?;
    Ok(())
}

async fn import(service: &Service, file: &Path, output: Output) -> Result<(), CommandError> {
    let orders = read_orders(file).map_err(CommandError::Refused)?;
    let outcome = service
        .import_deposits(&Actor::CommandLine, &orders)
        .await?;
    let imported = Imported {
        credited: outcome.credited,
        unmatched: outcome.unmatched,
        skipped: outcome.skipped,
    };
    output.print(&imported, |imported| {
        format!(
            "{} credited, {} unmatched, {} skipped because they were credited before.",
            imported.credited, imported.unmatched, imported.skipped
        )
    })?;
    Ok(())
}

/// Reads a whole file of payments; the first bad line refuses it, named by its number.
fn read_orders(file: &Path) -> Result<Vec<DepositOrder>, String> {
    let shown = file.display();
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_path(file)
        .map_err(|error| format!("can't read {shown}: {error}"))?;
    let mut orders = Vec::new();
    let mut header_seen = false;
    for record in reader.records() {
        let record = record.map_err(|error| {
            let line = error.position().map_or(0, csv::Position::line);
            format!("{shown}, line {line}: not a readable CSV line; nothing was credited")
        })?;
        let line = record.position().map_or(0, csv::Position::line);
        let bad = |what: &str| {
            Err(format!(
                "{shown}, line {line}: {what}; nothing was credited"
            ))
        };
        if !header_seen {
            header_seen = true;
            let mut cells = record.iter();
            // Spreadsheets put a byte order mark before the first cell.
            let first = cells.next().map(|cell| cell.trim_start_matches('\u{feff}'));
            if first != Some(HEADER[0]) || !cells.eq(HEADER[1..].iter().copied()) {
                return bad("the header must be bank_id,reference,amount");
            }
            continue;
        }
        match order(&record) {
            Ok(order) => orders.push(order),
            Err(what) => return bad(&what),
        }
    }
    if header_seen {
        Ok(orders)
    } else {
        Err(format!(
            "{shown} is empty; it needs the header bank_id,reference,amount"
        ))
    }
}

fn order(record: &csv::StringRecord) -> Result<DepositOrder, String> {
    let cells: Vec<&str> = record.iter().collect();
    let [bank_id, reference, sum] = cells[..] else {
        return Err("a line has three cells: bank_id,reference,amount".to_owned());
    };
    if bank_id.is_empty() || reference.is_empty() {
        return Err("bank_id and reference must not be empty".to_owned());
    }
    Ok(DepositOrder {
        bank_id: bank_id.to_owned(),
        reference: reference.to_owned(),
        amount: amount(sum)?,
    })
}

async fn unmatched(service: &Service, output: Output) -> Result<(), CommandError> {
    let deposits: Vec<Shown> = service
        .unmatched_deposits()
        .await?
        .into_iter()
        .map(Shown::from)
        .collect();
    output.print(&deposits, |deposits| {
        let rows: Vec<Vec<String>> = deposits
            .iter()
            .map(|deposit| {
                vec![
                    deposit.bank_id.clone(),
                    deposit.reference.clone(),
                    deposit.amount.0.to_string(),
                    deposit.received_at.0.to_table(),
                    or_dash(deposit.assigned_to.map(|to| to.to_string()).as_deref()),
                ]
            })
            .collect();
        table(
            &["BANK ID", "REFERENCE", "AMOUNT", "RECEIVED", "ASSIGNED"],
            &rows,
        )
    })?;
    Ok(())
}
