//! The program: reads the command line and the settings, and runs one command.
//!
//! This is a library because cargo compiles a library while its dependencies are still being
//! optimised, but a binary only afterwards.

// The type of a page nests as deeply as its markup.
#![recursion_limit = "512"]

mod api;
mod carrier;
mod cli;
mod client_address;
mod commands;
mod config;
mod config_error;
mod data_files;
mod demo;
mod descriptors;
mod http;
mod inbound_csv;
mod json;
mod mail;
mod metrics;
mod openapi;
mod ops;
mod opt_outs_csv;
mod public;
mod reload;
mod report_csv;
mod retry_after;
mod shutdown;
mod spelling;
mod startup;
mod systemd;
mod telemetry;
mod tls;
mod web;
mod webhook;
mod worker;

use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command};
use config::Settings;
use config_error::ConfigError;
use domain::printable::printable_lines;

/// Tests request each of these routes through the proxies of `deploy/`.
pub use web::routes as portal_routes;

/// Access to private parsers for the crate `fuzz`.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::api::fuzzing::*;
    pub use crate::config::fuzzing::*;
}

/// Returns freed memory to the system. The manifest explains why.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The version of the program, as the command line, the metrics and the pages of staff show it.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The exit code for a refusal or a failure. clap exits with 2 on wrong usage.
const REFUSED: u8 = 1;

/// Runs the command. Exit codes: 0 done, 1 refused or failed, 2 wrong usage.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let flags = cli.settings();
    let settings = match Settings::load(cli.flags.config.as_deref(), std::env::vars_os(), &flags) {
        Ok(settings) => settings,
        Err(error) => match settings_without_carriers(&cli, &flags, &error) {
            Some(settings) => settings,
            None => return refused(&error),
        },
    };
    let logging = match telemetry::start(settings.log, settings.log_format) {
        Ok(logging) => logging,
        Err(error) => return refused(&error),
    };
    let done = run(cli, &settings);
    // The last log lines must come before the error.
    drop(logging);
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refused(&*error),
    }
}

/// Returns the settings without carriers and routes, if the command needs none of them. The doctor
/// can also do without the whole file. Other commands would then use another database.
fn settings_without_carriers(
    cli: &Cli,
    flags: &[(&'static str, String)],
    error: &ConfigError,
) -> Option<Settings> {
    let load = |file| Settings::load_rest(cli.flags.config.as_deref(), file, flags, error).ok();
    match &cli.command {
        Command::Doctor => load(true).or_else(|| load(false)),
        Command::Check
        | Command::Backup { .. }
        | Command::Audit(_)
        | Command::Search { .. }
        | Command::Deposit(_)
        | Command::Message(
            cli::Message::Unknown { .. } | cli::Message::Show { .. } | cli::Message::Settle { .. },
        ) => {
            let settings = load(true)?;
            eprintln!(
                "heliograph: continuing without carriers: {}",
                printable_lines(&error.to_string())
            );
            Some(settings)
        }
        Command::Carrier(cli::Carrier::List | cli::Carrier::Show { .. }) => {
            let settings = load(true)?;
            eprintln!(
                "heliograph: {}\nA running server keeps its earlier settings. Its carriers are listed \
                 below. Correct the file, then run `heliograph carrier reload`.",
                printable_lines(&error.to_string())
            );
            Some(settings)
        }
        _ => None,
    }
}

fn run(cli: Cli, settings: &Settings) -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        if let Command::Serve(serve) = &cli.command {
            let served = startup::serve(serve, settings, cli.json).await;
            served.map_err(|error| error.with_repair(settings))?;
        } else {
            commands::run(cli, settings).await?;
        }
        Ok(())
    })
}

fn refused(error: &dyn std::fmt::Display) -> ExitCode {
    // The error may quote outside text.
    eprintln!("heliograph: {}", printable_lines(&error.to_string()));
    ExitCode::from(REFUSED)
}
