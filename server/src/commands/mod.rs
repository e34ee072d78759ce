//! The commands other than `serve`. Each opens the database, calls the service and prints the
//! result.

mod account;
mod application;
mod audit;
mod backup;
mod carrier;
mod carrier_test;
mod copy;
mod deposit;
mod distribute;
mod doctor;
mod doctor_site;
mod encrypted;
mod finding;
mod hold;
mod incident;
mod mail;
mod margin;
mod message;
mod number;
mod output;
mod pcap;
mod price;
mod recipient;
mod route;
mod search;
mod sender;
mod staff_list;
mod upkeep;
mod webhook;

use service::{CarrierInfo, Clock, Entropy, MailSettings, Network, Service};

use crate::cli::{Cli, Command};
use crate::config::Settings;
use crate::config::carriers::{CarrierKind, CarrierSettings};
use crate::config_error::ConfigError;
pub use output::Output;

/// Why a command failed. It is printed to standard error, and the exit code is 1.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("{}", .0.for_operator())]
    Service(#[from] service::Error),
    #[error(transparent)]
    Open(#[from] service::OpenError),
    #[error(transparent)]
    Copy(#[from] service::CopyError),
    #[error(transparent)]
    Distribute(#[from] service::DistributeError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{0}")]
    Refused(String),
    #[error("can't print the result: {0}")]
    Output(#[from] std::io::Error),
}

pub async fn run(cli: Cli, settings: &Settings) -> Result<(), CommandError> {
    let output = Output::new(cli.json);
    match &cli.command {
        Command::Config => return upkeep::config(settings, output),
        Command::Openapi => return upkeep::openapi(settings, output),
        Command::Manual { folder } => return upkeep::manual(folder),
        Command::Migrate => return upkeep::migrate(settings, output).await,
        Command::Copy { from, to, to_file } => {
            let to = copy::target(settings, to.as_deref(), to_file.as_deref())?;
            return copy::run(settings, from, &to, output).await;
        }
        Command::Doctor => return doctor::run(settings, output).await,
        Command::Restore { file, identity } => {
            return backup::restore(settings, file, identity.as_deref(), output);
        }
        Command::Distribute { shards } => {
            return distribute::run(settings, *shards, output).await;
        }
        _ => {}
    }
    let base_url = settings.base_url(settings.addr);
    let service = Service::open_beside(service_config(settings, base_url)).await?;
    let result = match cli.command {
        Command::Account(command) => account::run(&service, settings, command, output).await,
        Command::Application(command) => application::run(&service, command, output).await,
        Command::Sender(command) => sender::run(&service, command, output).await,
        Command::Webhook(command) => webhook::run(&service, command, output).await,
        Command::Number(command) => number::run(&service, command, output).await,
        Command::Deposit(command) => deposit::run(&service, command, output).await,
        Command::Margin(days) => margin::run(&service, days, output).await,
        Command::Price(command) => price::run(&service, command, output).await,
        Command::Carrier(command) => carrier::run(&service, settings, command, output).await,
        Command::Incident(command) => incident::run(&service, command, output).await,
        Command::StaffList(command) => staff_list::run(&service, command, output).await,
        Command::Mail(command) => mail::run(&service, command, output).await,
        Command::Audit(command) => audit::run(&service, command, output).await,
        Command::Search { text } => search::run(&service, &text, output).await,
        Command::Route(command) => route::run(&service, command, output).await,
        Command::Message(command) => message::run(&service, command, output).await,
        Command::Check => upkeep::check(&service, output).await,
        Command::Backup { file, recipients, recipients_file } => {
            let recipients = encrypted::recipients(&recipients, recipients_file.as_deref());
            match recipients {
                Ok(to) => backup::backup(&service, settings, &file, &to, output).await,
                Err(why) => Err(CommandError::Refused(why)),
            }
        }
        Command::Serve(_)
        | Command::Config
        | Command::Openapi
        | Command::Manual { .. }
        | Command::Migrate
        | Command::Doctor
        | Command::Restore { .. }
        | Command::Copy { .. }
        | Command::Distribute { .. } => Ok(()),
    };
    service.close().await;
    result
}

/// Returns the service's configuration. `base_url` is the address that customers use.
pub fn service_config(settings: &Settings, base_url: String) -> service::Config {
    service::Config {
        database_url: settings.database_url.clone(),
        prices: settings.prices,
        currency: settings.currency.clone(),
        data_dir: settings.data_dir.clone(),
        network: network(settings),
        limits: settings.limits,
        mail: MailSettings {
            base_url,
            is_set_up: settings.mail.is_some(),
            support_contact: settings.footer.support_contact.clone(),
            support_hours: settings.support_hours.clone(),
        },
        endpoints: settings.endpoint_rules(false),
        opt_outs: settings.opt_outs.clone(),
        clock: Clock::system(),
        entropy: Entropy::system(),
    }
}

/// Returns the carriers and routes, or the sandbox alone if none are set up.
pub fn network(settings: &Settings) -> Network {
    let (country_code, default_sender) =
        (settings.country_code.clone(), settings.default_sender.clone());
    if settings.carriers.list.is_empty() {
        return Network::sandbox(country_code, default_sender);
    }
    let info = |carrier: &CarrierSettings| CarrierInfo {
        name: carrier.name.clone(),
        sandbox: carrier.kind == CarrierKind::Sandbox,
        binds: matches!(carrier.kind, CarrierKind::Smpp(_)),
        whole: carrier.takes_whole(),
        message_id: match &carrier.kind {
            CarrierKind::Smpp(smpp) => Some(smpp.message_id),
            CarrierKind::Http(_) | CarrierKind::Sandbox => None,
        },
        named: carrier.named_states(),
        rewriting: carrier.rewriting.clone(),
    };
    Network {
        carriers: settings.carriers.list.iter().map(info).collect(),
        routes: settings.carriers.routes.clone(),
        country_code,
        default_sender,
    }
}
