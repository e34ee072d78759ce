//! `heliograph account`.

use std::collections::BTreeMap;
use std::io;

use domain::{Email, Password};
use serde::Serialize;
use service::{Actor, Service};

use super::{CommandError, Output};
use crate::cli::Account;
use crate::config::Settings;

#[derive(Serialize)]
struct Added {
    id: i64,
    email: String,
    staff: bool,
}

pub async fn run(
    service: &Service,
    settings: &Settings,
    command: Account,
    output: Output,
) -> Result<(), CommandError> {
    match command {
        Account::Add { email, staff, .. } => add(service, &email, staff, output).await,
        Account::Reset { email } => {
            let token = service.issue_reset(&Actor::CommandLine, &email).await?;
            let link = format!("{}/reset/{token}", settings.base_url(settings.addr));
            let reset = BTreeMap::from([("email", &email), ("link", &link)]);
            Ok(output.print(&reset, |_| link.clone())?)
        }
    }
}

async fn add(
    service: &Service,
    email: &Email,
    staff: bool,
    output: Output,
) -> Result<(), CommandError> {
    let mut line = String::new();
    io::stdin()
        .read_line(&mut line)
        .map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => {
                CommandError::Refused("the password isn't valid UTF-8".to_owned())
            }
            _ => CommandError::Refused(format!("can't read the password: {error}")),
        })?;
    let password = Password::parse(line.trim_end_matches(['\r', '\n']))
        .map_err(|error| CommandError::Refused(error.to_string()))?;
    let account = service
        .add_account(&Actor::CommandLine, email, &password, staff)
        .await?;
    let added = Added {
        id: account.id,
        email: account.email,
        staff: account.staff,
    };
    Ok(output.print(&added, |added| format!("Added {}.", added.email))?)
}
