//! The command `heliograph deposit`.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use domain::records::{DepositRecord, LineOutcome};
use domain::{Money, Reference};
use serde::Serialize;
use service::{Actor, DepositRequest, Service, StatementFile};

use super::output::{Column, or_dash};
use super::{CommandError, Output};
use crate::cli::Deposit;
use crate::json::{Amount, DateTime, shown};

/// The interval at which an import checks whether all its lines are credited.
const CREDITING_POLL: Duration = Duration::from_millis(500);

#[derive(Serialize)]
struct Added {
    status: &'static str,
    bank_id: String,
    reference: String,
    amount: Amount,
    /// True if the deposit was already recorded. The command then changed nothing.
    already: bool,
    balance: Option<Amount>,
}

/// The number of lines with each fault that an error lists.
const LINES_SHOWN: i64 = 5;

#[derive(Serialize)]
struct Imported {
    credited: i64,
    unmatched: i64,
    skipped: i64,
}

shown! {
    struct Shown from record: DepositRecord {
        bank_id: String = record.bank_id,
        reference: String = record.reference,
        amount: Amount = Amount(record.amount),
        received_at: DateTime = DateTime(record.received_at),
        assigned_to: Option<Reference> = record.assigned_to,
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

/// Imports a bank statement like the page `/support/import`, and confirms it at once.
async fn import(service: &Service, path: &Path, output: Output) -> Result<(), CommandError> {
    let refused = |why: String| CommandError::Refused(format!("{}: {why}", path.display()));
    let file = File::open(path).map_err(|error| refused(format!("can't be read: {error}")))?;
    let money = service.money();
    let id = match money.import_statement(file, false).await? {
        StatementFile::Stored(id) => id,
        StatementFile::Bad(bad) => return Err(refused(bad.to_string())),
        StatementFile::Columns { header } => {
            return Err(refused(format!(
                "the columns of the header {header} aren't known; name them bank_id, reference \
                 and amount, or choose them at /support/import"
            )));
        }
    };
    let report = async || {
        let report = money.statement_report(id).await?;
        report.ok_or_else(|| refused("the stored statement is gone".to_owned()))
    };
    if let Some(lines) = not_creditable(service, id).await? {
        return Err(refused(format!(
            "{lines}; nothing was credited. To credit the lines without conflicts, confirm \
             statement {id} at /support/import."
        )));
    }
    money.confirm_statement(Actor::CommandLine, id).await?;
    let report = loop {
        // A server on the same database may be crediting the lines at the same time. Then this call
        // returns before all lines are credited.
        money.credit_statements().await?;
        let report = report().await?;
        if report.statement.done_at.is_some() {
            break report;
        }
        tokio::time::sleep(CREDITING_POLL).await;
    };
    // Another process may have recorded one of these bank IDs since the check.
    if let Some(lines) = not_creditable(service, id).await? {
        return Err(refused(format!("{lines}; the other lines are credited")));
    }
    let lines = |outcome| {
        let counts = report.counts.iter().filter(|(of, _)| *of == outcome);
        counts.map(|(_, lines)| lines).sum()
    };
    let [known, debits, foreign] =
        [LineOutcome::Known, LineOutcome::Debit, LineOutcome::OtherCurrency].map(lines);
    let imported = Imported {
        credited: lines(LineOutcome::Credited),
        unmatched: lines(LineOutcome::Unmatched),
        skipped: known + debits + foreign,
    };
    Ok(output.print(&imported, |imported| {
        format!(
            "{} credited, {} unmatched, {} skipped: {known} were recorded before, {debits} are \
             debits, {foreign} are in another currency.",
            imported.credited, imported.unmatched, imported.skipped
        )
    })?)
}

/// Describes the first lines that conflict with a stored deposit or would make a balance too large.
/// `None` if there are no such lines.
async fn not_creditable(service: &Service, id: i64) -> Result<Option<String>, CommandError> {
    let mut lines = Vec::new();
    for (outcome, why) in [
        (LineOutcome::Conflict, "is already stored with another reference or amount"),
        (LineOutcome::Refused, "would make the balance too large"),
    ] {
        let first = service.money().statement_lines(id, Some(outcome), None, LINES_SHOWN).await?;
        lines.extend(first.items.into_iter().map(|case| {
            format!("line {}: the bank ID {} {why}", case.line.line, case.line.bank_id)
        }));
    }
    Ok((!lines.is_empty()).then(|| lines.join("; ")))
}

/// Builds a deposit request from arguments. Trims the white space around them.
fn payment(bank_id: &str, reference: &str, amount: Money) -> Result<DepositRequest, String> {
    let (bank_id, reference) = (bank_id.trim(), reference.trim());
    if bank_id.is_empty() || reference.is_empty() {
        return Err("bank_id and reference must not be empty".to_owned());
    }
    Ok(DepositRequest { bank_id: bank_id.to_owned(), reference: reference.to_owned(), amount })
}
