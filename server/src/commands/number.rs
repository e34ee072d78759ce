//! `heliograph number`.

use domain::records::InboundNumberRecord;
use domain::{Keyword, Reference};
use serde::Serialize;
use service::{Actor, Service};

use super::output::{Column, or_dash};
use super::{CommandError, Output};
use crate::cli::InboundNumber;
use crate::json::{DateTime, shown};

shown! {
    /// A number as the command line shows it.
    struct Shown from record: InboundNumberRecord {
        number: String = record.number,
        keyword: Option<String> = record.keyword.map(String::from),
        reference: Reference = record.reference,
        created_at: DateTime = DateTime(record.created_at),
    }
}

const COLUMNS: [Column<Shown>; 4] = [
    ("NUMBER", |shown| shown.number.clone()),
    ("KEYWORD", |shown| or_dash(shown.keyword.as_deref())),
    ("APPLICATION", |shown| shown.reference.to_string()),
    ("ADDED", |shown| shown.created_at.0.to_table()),
];

/// A number that was added or removed.
#[derive(Serialize)]
struct Changed {
    number: String,
    keyword: Option<Keyword>,
}

pub async fn run(
    service: &Service,
    command: InboundNumber,
    output: Output,
) -> Result<(), CommandError> {
    let (actor, support) = (Actor::CommandLine, service.support());
    let (number, keyword, done) = match command {
        InboundNumber::List => {
            return Ok(output.list(support.inbound_numbers().await?, &COLUMNS)?);
        }
        InboundNumber::Add { number, application, keyword } => {
            support.add_inbound_number(&actor, &number, keyword.clone(), application).await?;
            (number, keyword, "added")
        }
        InboundNumber::Remove { number, keyword } => {
            support.remove_inbound_number(&actor, &number, keyword.clone()).await?;
            (number, keyword, "removed")
        }
    };
    let changed = Changed { number: number.digits().to_owned(), keyword };
    Ok(output.print(&changed, |changed| format!("{} was {done}.", changed.number))?)
}
