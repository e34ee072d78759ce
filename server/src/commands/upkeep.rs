//! `heliograph migrate`, `check`, `config`, `openapi` and `manual`.

use std::collections::BTreeMap;
use std::path::Path;

use clap::CommandFactory as _;
use serde::Serialize;
use service::Service;

use super::output::table;
use super::{CommandError, Output};
use crate::cli::Cli;
use crate::config::Settings;

#[derive(Serialize)]
struct Checked {
    ok: bool,
    broken: Vec<String>,
}

pub async fn migrate(settings: &Settings, output: Output) -> Result<(), CommandError> {
    Service::migrate(&settings.database_url).await?;
    let done = BTreeMap::from([("status", "migrated")]);
    Ok(output.print(&done, |_| "The database is up to date.".to_owned())?)
}

pub async fn check(service: &Service, output: Output) -> Result<(), CommandError> {
    let broken = service.operations().check().await?;
    let checked = Checked { ok: broken.is_empty(), broken };
    output.print(&checked, |checked| {
        if checked.ok { "All invariants hold.".to_owned() } else { checked.broken.join("\n") }
    })?;
    if checked.ok {
        Ok(())
    } else {
        let count = checked.broken.len();
        Err(CommandError::Refused(format!("broken invariants: {count}")))
    }
}

pub fn config(settings: &Settings, output: Output) -> Result<(), CommandError> {
    let shown = settings.shown();
    let values: BTreeMap<&str, &Option<String>> =
        shown.iter().map(|(name, value, _)| (name.as_str(), value)).collect();
    Ok(output.print(&values, |_| {
        table(
            &shown,
            &[
                ("SETTING", |(name, ..)| name.clone()),
                ("VALUE", |(_, value, _)| value.clone().unwrap_or_else(|| "(not set)".to_owned())),
                ("FROM", |(.., source)| source.as_str().to_owned()),
            ],
        )
    })?)
}

/// Prints the document as JSON with and without `--json`. With it, the document is one line.
pub fn openapi(settings: &Settings, output: Output) -> Result<(), CommandError> {
    let base_url = settings.base_url(settings.addr);
    let document = crate::openapi::document(&base_url, &settings.limits)
        .map_err(|error| CommandError::Refused(error.to_string()))?;
    Ok(output.print(&document, |document| format!("{document:#}"))?)
}

/// Writes a manual page for each command, such as `heliograph-serve.1`.
pub fn manual(folder: &Path) -> Result<(), CommandError> {
    std::fs::create_dir_all(folder)?;
    Ok(clap_mangen::generate_to(Cli::command(), folder)?)
}
