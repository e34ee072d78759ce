//! `heliograph backup` and `heliograph restore`.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Command;

use percent_encoding::percent_decode_str;
use service::Service;
use url::Url;

use super::{CommandError, Output};
use crate::config::Settings;

/// The text that is printed after a restore.
const NEXT: &str = "Copy secret.key into data_dir if it was there, then start the server. It holds \
                    all messages until you run `heliograph messages reconcile`.";

type Result<T> = std::result::Result<T, CommandError>;

pub async fn backup(
    service: &Service,
    settings: &Settings,
    file: &Path,
    output: Output,
) -> Result<()> {
    let shown = file.display().to_string();
    let refused = |why: &str| CommandError::Refused(format!("can't copy to {shown}: {why}"));
    if settings.database_url.starts_with("sqlite:") {
        let copied = service.operations().backup(file).await;
        copied.map_err(|error| refused(&error.for_operator().clone()))?;
    } else {
        if service.operations().is_distributed() {
            return Err(refused(
                "the database is distributed; back up each server as docs/SCALING.md says",
            ));
        }
        let begun = service.clock().now();
        dump(&settings.database_url, file).map_err(|why| refused(&why))?;
        service.operations().note_backup(begun).await?;
    }
    Ok(output.print(&BTreeMap::from([("file", &shown)]), |_| format!("Copied to {shown}."))?)
}

pub fn restore(settings: &Settings, file: &Path, output: Output) -> Result<()> {
    let shown = file.display().to_string();
    let refused = |why: &str| CommandError::Refused(format!("can't restore {shown}: {why}"));
    if settings.database_url.starts_with("sqlite:") {
        Service::restore(&settings.database_url, &settings.data_dir, file)?;
    } else {
        let mut restoring = tool("pg_restore", &settings.database_url).map_err(|e| refused(&e))?;
        restoring.args(["--no-owner", "--exit-on-error", "--single-transaction"]).arg(file);
        run(restoring).map_err(|why| refused(&why))?;
    }
    Ok(output
        .print(&BTreeMap::from([("file", &shown)]), |_| format!("Restored {shown}. {NEXT}"))?)
}

/// Dumps a PostgreSQL database into a new file, and reads the list of its contents back.
fn dump(url: &str, file: &Path) -> std::result::Result<(), String> {
    if file.exists() {
        return Err("the file exists already; choose another name".to_owned());
    }
    // A file with the final name is whole.
    let part = file.with_added_extension("part");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(&part).map_err(|error| error.to_string())?;
    let mut dumping = tool("pg_dump", url)?;
    dumping.args(["--format=custom", "--file"]).arg(&part);
    run(dumping)?;
    let mut listing = Command::new("pg_restore");
    listing.arg("--list").arg(&part);
    if !run(listing)?.contains("TABLE DATA") {
        return Err("pg_dump wrote no tables".to_owned());
    }
    std::fs::rename(&part, file).map_err(|error| error.to_string())
}

/// Prepares a tool of PostgreSQL. Other users of the machine can read command-line arguments, so
/// the password goes into the environment.
fn tool(name: &str, url: &str) -> std::result::Result<Command, String> {
    let mut url = Url::parse(url).map_err(|error| format!("the database URL: {error}"))?;
    let mut command = Command::new(name);
    if let Some(password) = url.password() {
        command.env("PGPASSWORD", percent_decode_str(password).decode_utf8_lossy().as_ref());
    }
    // A URL without a host has no password either.
    let _ = url.set_password(None);
    command.arg(format!("--dbname={url}"));
    Ok(command)
}

/// Runs a tool, and returns what it printed.
fn run(mut command: Command) -> std::result::Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let ended = command.output().map_err(|error| {
        format!("{name} can't be started: {error}; install PostgreSQL's client programs")
    })?;
    if ended.status.success() {
        return Ok(String::from_utf8_lossy(&ended.stdout).into_owned());
    }
    Err(format!("{name}: {}", String::from_utf8_lossy(&ended.stderr).trim()))
}
