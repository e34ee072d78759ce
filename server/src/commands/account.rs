//! `heliograph account`.

use std::collections::BTreeMap;
use std::io;

use domain::support::NoteRecord;
use domain::{Email, Password};
use serde::Serialize;
use service::{AccountChange, AccountDetail, Actor, Service};

use super::output::{Column, facts, or_dash};
use super::{CommandError, Output, recipient};
use crate::cli::Account;
use crate::config::Settings;
use crate::json::{DateTime, shown};

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
            let token = service.accounts().issue_reset(&Actor::CommandLine, &email).await?;
            let link = format!("{}/reset/{token}", settings.base_url(settings.addr));
            let reset = BTreeMap::from([("email", &email), ("link", &link)]);
            Ok(output.print(&reset, |_| link.clone())?)
        }
        Account::List => list(service, output).await,
        Account::Show { email } => show(service, &email, output).await,
        Account::Note { email, text } => {
            let note = service.support().add_note(&Actor::CommandLine, &email, &text).await?;
            Ok(output.print(&Note::from(note), |_| format!("Noted on {email}."))?)
        }
        Account::ExportNumber { email, number, file } => {
            recipient::export(service, &email, &number, &file, output).await
        }
        Account::EraseNumber { number, account, .. } => {
            recipient::erase(service, account.as_deref(), &number, output).await
        }
        command => change(service, command, output).await,
    }
}

/// Makes a change, and prints the changed account. Without `--json`, prints one sentence.
async fn change(service: &Service, command: Account, output: Output) -> Result<(), CommandError> {
    let (actor, accounts) = (Actor::CommandLine, service.accounts());
    let (email, change, done) = match command {
        Account::Disable { email, reason } => {
            accounts.disable_account(&actor, &email, &reason).await?;
            (email, None, "is disabled and signed out; its keys send nothing")
        }
        Account::Enable { email } => {
            accounts.enable_account(&actor, &email).await?;
            (email, None, "is enabled; its deferred messages continue")
        }
        Account::SignOut { email } => {
            (email, Some(AccountChange::SignOut), "is signed out on every device")
        }
        Account::Promote { email } => {
            (email, Some(AccountChange::Promote), "is staff, and signed out on every device")
        }
        Account::Demote { email } => {
            (email, Some(AccountChange::Demote), "is a customer, and signed out on every device")
        }
        Account::ResetFactor { email } => {
            let done = "has no second factor and is signed out on every device";
            (email, Some(AccountChange::ResetFactor), done)
        }
        Account::Add { .. }
        | Account::Reset { .. }
        | Account::List
        | Account::Show { .. }
        | Account::ExportNumber { .. }
        | Account::EraseNumber { .. }
        | Account::Note { .. } => {
            return Ok(());
        }
    };
    if let Some(change) = change {
        accounts.change_account(&actor, &email, change).await?;
    }
    let shown = Shown::from(accounts.account_detail(&email).await?);
    Ok(output.print(&shown, |shown| format!("{} {done}.", shown.email))?)
}

shown! {
    /// An account as the command line shows it.
    struct Shown from detail: AccountDetail {
        id: i64 = detail.account.id,
        email: String = detail.account.email,
        staff: bool = detail.account.staff,
        second_factor: bool = detail.account.second_factor,
        created_at: DateTime = DateTime(detail.created_at),
        disabled_at: Option<DateTime> = detail.disabled_at.map(DateTime),
        disabled_reason: Option<String> = detail.disabled_reason,
    }
}

/// An account with the details that only `show` prints.
#[derive(Serialize)]
struct Whole {
    #[serde(flatten)]
    account: Shown,
    second_factor_since: Option<DateTime>,
    recovery_codes_left: Option<i64>,
    /// The number of signed-in devices.
    devices: usize,
    /// The references of the account's applications.
    applications: Vec<String>,
    /// Newest first.
    notes: Vec<Note>,
}

shown! {
    /// A note as the command line shows it.
    struct Note from note: NoteRecord {
        at: DateTime = DateTime(note.at),
        author: String = note.author,
        text: String = note.text,
    }
}

impl Shown {
    const fn role(&self) -> &'static str {
        if self.staff { "staff" } else { "customer" }
    }
}

const COLUMNS: [Column<Shown>; 5] = [
    ("EMAIL", |account| account.email.clone()),
    ("ROLE", |account| account.role().to_owned()),
    ("SECOND FACTOR", |account| (if account.second_factor { "yes" } else { "-" }).to_owned()),
    ("CREATED", |account| account.created_at.0.to_table()),
    ("DISABLED", |account| {
        let disabled = account.disabled_at.map(|at| at.0.to_table());
        or_dash(disabled.as_deref())
    }),
];

async fn list(service: &Service, output: Output) -> Result<(), CommandError> {
    let accounts = service.accounts().all().await?;
    Ok(output.list(accounts, &COLUMNS)?)
}

async fn show(service: &Service, email: &str, output: Output) -> Result<(), CommandError> {
    let account = Shown::from(service.accounts().account_detail(email).await?);
    let factor = service.accounts().factor(account.id).await?;
    let applications = service.applications().of_account(account.id).await?;
    let notes = service.support().account_notes(account.id).await?;
    let whole = Whole {
        second_factor_since: factor.map(|factor| DateTime(factor.since)),
        recovery_codes_left: factor.map(|factor| factor.recovery_codes),
        devices: service.accounts().devices(account.id, "").await?.len(),
        applications: (applications.iter())
            .map(|application| application.reference.to_string())
            .collect(),
        notes: notes.into_iter().map(Note::from).collect(),
        account,
    };
    Ok(output.print(&whole, words)?)
}

fn words(whole: &Whole) -> String {
    let account = &whole.account;
    let time = |at: Option<DateTime>| or_dash(at.map(|at| at.0.to_table()).as_deref());
    let disabled = time(account.disabled_at);
    let reason = or_dash(account.disabled_reason.as_deref());
    let codes = whole.recovery_codes_left.map(|left| left.to_string());
    let rows = [
        ("Email", account.email.clone()),
        ("Role", account.role().to_owned()),
        ("Created", account.created_at.0.to_table()),
        ("Disabled", disabled),
        ("Reason", reason),
        ("Second factor since", time(whole.second_factor_since)),
        ("Recovery codes left", or_dash(codes.as_deref())),
        ("Signed-in devices", whole.devices.to_string()),
        ("Applications", or_dash(joined(&whole.applications).as_deref())),
    ];
    let notes = whole.notes.iter().map(|note| {
        let at = note.at.0.to_table();
        format!("Note {at} by {}: {}", note.author, note.text)
    });
    let lines: Vec<_> = std::iter::once(facts(&rows)).chain(notes).collect();
    lines.join("\n")
}

fn joined(texts: &[String]) -> Option<String> {
    (!texts.is_empty()).then(|| texts.join(" "))
}

async fn add(
    service: &Service,
    email: &Email,
    staff: bool,
    output: Output,
) -> Result<(), CommandError> {
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => {
            CommandError::Refused("the password isn't valid UTF-8".to_owned())
        }
        _ => CommandError::Refused(format!("can't read the password: {error}")),
    })?;
    let password = Password::parse(line.trim_end_matches(['\r', '\n']))
        .map_err(|error| CommandError::Refused(error.to_string()))?;
    let account =
        service.accounts().add_account(&Actor::CommandLine, email, &password, staff).await?;
    let added = Added { id: account.id, email: account.email, staff: account.staff };
    Ok(output.print(&added, |added| format!("Added {}.", added.email))?)
}
