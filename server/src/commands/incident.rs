//! `heliograph incident`.

use domain::incident::IncidentRecord;
use service::{Actor, Service};

use super::output::{Column, or_dash};
use super::{CommandError, Output};
use crate::cli::Incident;
use crate::json::{DateTime, shown};

shown! {
    /// A note as the command line shows it.
    struct Shown from record: IncidentRecord {
        id: i64 = record.id,
        text: String = record.text,
        carrier: Option<String> = record.carrier,
        began_at: DateTime = DateTime(record.began_at),
    }
}

const COLUMNS: [Column<Shown>; 4] = [
    ("ID", |note| note.id.to_string()),
    ("SINCE", |note| note.began_at.0.to_table()),
    ("CARRIER", |note| or_dash(note.carrier.as_deref())),
    ("TEXT", |note| note.text.clone()),
];

pub async fn run(service: &Service, command: Incident, output: Output) -> Result<(), CommandError> {
    let actor = Actor::CommandLine;
    let (record, done) = match command {
        Incident::List => return Ok(output.list(service.delivery().incidents().await?, &COLUMNS)?),
        Incident::Open { text, carrier } => {
            let delivery = service.delivery();
            let opening = delivery.open_incident(&actor, &text, carrier.as_deref());
            (opening.await?, "is open: customers can see it")
        }
        Incident::End { id } => (service.delivery().end_incident(&actor, id).await?, "is ended"),
    };
    Ok(output.print(&Shown::from(record), |note| format!("Note {} {done}.", note.id))?)
}
