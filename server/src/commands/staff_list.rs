//! `heliograph staff-list`.

use serde::Serialize;
use service::{Actor, Service};

use super::{CommandError, Output};
use crate::cli::StaffLists;

/// A list as the command line shows it.
#[derive(Serialize)]
struct Shown {
    list: &'static str,
    entries: Vec<String>,
}

pub async fn run(
    service: &Service,
    command: StaffLists,
    output: Output,
) -> Result<(), CommandError> {
    let list = match command {
        StaffLists::Show { list } => list,
        StaffLists::Set { list, file } => {
            let text = std::fs::read_to_string(&file).map_err(|error| {
                CommandError::Refused(format!("can't read {}: {error}", file.display()))
            })?;
            let actor = Actor::CommandLine;
            service.applications().set_staff_list(&actor, list, &text).await?;
            list
        }
    };
    let shown =
        Shown { list: list.as_str(), entries: service.applications().staff_list(list).await? };
    Ok(output.print(&shown, |shown| shown.entries.join("\n"))?)
}
