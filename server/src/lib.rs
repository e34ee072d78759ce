//! The program: reads the command line and the settings, and does one thing.
//!
//! A library, because cargo compiles one while what it needs is still being optimised, and a binary
//! only afterwards.

// A page is one type, as deep as its markup.
#![recursion_limit = "512"]

mod api;
mod carrier;
mod cli;
mod client_address;
mod commands;
mod config;
mod demo;
mod descriptors;
mod http;
mod json;
mod mail;
mod margin_csv;
mod metrics;
mod openapi;
mod ops;
mod public;
mod report_csv;
mod shutdown;
mod spelling;
mod startup;
mod telemetry;
mod tls;
mod web;
mod worker;

use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command};
use config::Settings;
use domain::printable::printable_lines;

/// Tests ask each of them through the proxies of `deploy/`.
pub use web::routes as portal_routes;

/// Gives memory back: see the manifest.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Exit code for what is refused or broken. Wrong usage is 2, which clap sees to.
const REFUSED: u8 = 1;

/// Does what the command line asks for. Exit codes: 0 done, 1 refused or broken, 2 wrong usage.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let flags = cli.settings();
    let settings = match Settings::load(cli.flags.config.as_deref(), std::env::vars_os(), &flags) {
        Ok(settings) => settings,
        Err(error) => return refused(&error),
    };
    let logging = match telemetry::start(settings.log) {
        Ok(logging) => logging,
        Err(error) => return refused(&error),
    };
    let done = run(cli, &settings);
    // The last lines of the log come before the reason for ending.
    drop(logging);
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refused(&*error),
    }
}

fn run(cli: Cli, settings: &Settings) -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        if let Command::Serve(serve) = &cli.command {
            startup::serve(serve, settings, cli.json).await?;
        } else {
            commands::run(cli, settings).await?;
        }
        Ok(())
    })
}

fn refused(error: &dyn std::fmt::Display) -> ExitCode {
    // The error may quote what was written outside.
    eprintln!("heliograph: {}", printable_lines(&error.to_string()));
    ExitCode::from(REFUSED)
}
