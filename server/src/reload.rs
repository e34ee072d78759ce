//! Reloads carriers and routes while the process serves: at SIGHUP, and for `carrier reload`.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use service::{AnswerState, CarrierCommand, Result, Service};
use tokio::signal::unix::Signal;
use tokio_util::sync::CancellationToken;

use crate::carrier::http::endpoint::PostingCarriers;
use crate::commands::network;
use crate::config::Settings;
use crate::config::carriers::CarrierSettings;
use crate::config_error::ConfigError;
use crate::worker::{Change, Connections};

/// How often to look for commands. No notification announces them.
const INTERVAL: Duration = Duration::from_millis(500);

/// The parts of the process that use carriers and routes.
pub struct Reloader {
    pub service: Service,
    /// The settings in force.
    pub settings: RwLock<Settings>,
    pub is_demo: bool,
    pub posting: Arc<PostingCarriers>,
    pub worker: Box<dyn Fn(Change) + Send + Sync>,
    pub connections: Connections,
}

impl Reloader {
    /// Reloads at each signal, and carries out commands, until the token is cancelled.
    ///
    /// `last` is the ID of the newest command that was given before the process was ready.
    pub async fn run(&self, mut last: i64, mut signal: Signal, stop: CancellationToken) {
        self.report(None).await;
        while !stop.is_cancelled() {
            tokio::select! {
                _ = signal.recv() => drop(self.reload().await),
                () = tokio::time::sleep(INTERVAL) => {
                    if let Err(error) = self.obey(&mut last).await {
                        tracing::warn!(detail = ?error, "commands about carriers can't be read");
                    }
                }
                () = stop.cancelled() => {}
            }
        }
    }

    /// Carries out the commands after the one with the ID `last`.
    async fn obey(&self, last: &mut i64) -> Result<()> {
        let delivery = self.service.delivery();
        for (id, command) in delivery.commands_after(*last).await? {
            *last = id;
            let (state, text) = match command {
                Some(CarrierCommand::Reload) => match self.reload().await {
                    Ok(changes) => (AnswerState::Done, changes),
                    Err(error) => (AnswerState::Refused, error.to_string()),
                },
                Some(CarrierCommand::Rebind(name)) => {
                    (self.worker)(Change::Rebind(name));
                    (AnswerState::Done, "binding again".to_owned())
                }
                Some(command @ (CarrierCommand::Test(_) | CarrierCommand::Trace(_))) => {
                    self.begin(id, command);
                    continue;
                }
                None => (AnswerState::Refused, "the command is over or unknown".to_owned()),
            };
            delivery.answer_command(id, 1, state, text).await?;
        }
        Ok(())
    }

    /// Begins a command that takes longer.
    fn begin(&self, id: i64, command: CarrierCommand) {
        let (service, connections) = (self.service.clone(), self.connections.clone());
        tokio::spawn(async move {
            let done = match &command {
                CarrierCommand::Test(test) => connections.test(&service, id, test).await,
                CarrierCommand::Trace(trace) => connections.trace(&service, id, trace).await,
                CarrierCommand::Reload | CarrierCommand::Rebind(_) => Ok(()),
            };
            if let Err(error) = done {
                tracing::warn!(detail = ?error, "a command about a carrier failed");
            }
        });
    }

    /// Reads all settings again, and applies carriers and routes. Returns what changed.
    ///
    /// # Errors
    /// Settings with which the process couldn't start. They change nothing.
    async fn reload(&self) -> std::result::Result<String, ConfigError> {
        let reloaded = self.try_reload();
        match &reloaded {
            Ok(changes) => {
                tracing::info!("reloaded the settings: {changes}");
                self.report(None).await;
            }
            Err(error) => {
                let error = error.in_one_line();
                tracing::error!(
                    "the settings weren't reloaded, and nothing was changed, because they have an \
                     error: {error}"
                );
                self.report(Some(error)).await;
            }
        }
        reloaded
    }

    /// Stores for staff why the settings weren't reloaded. `None` means that they were.
    async fn report(&self, refused: Option<String>) {
        if let Err(error) = self.service.delivery().report_reload(refused).await {
            tracing::warn!(detail = ?error, "the result of a reload can't be stored for staff");
        }
    }

    fn try_reload(&self) -> std::result::Result<String, ConfigError> {
        let mut settings = self.settings.write();
        let new = settings.load_again()?;
        new.refuse_sandbox(self.is_demo)?;
        let others = settings.changed_values(&new);
        if !others.is_empty() {
            tracing::warn!("to apply these changed settings, restart the process: {others}");
        }
        let changes = changes(&settings, &new);
        settings.carriers = new.carriers;
        self.service.delivery().set_network(network(&settings));
        self.posting.set(&settings.carriers.list);
        (self.worker)(Change::Carriers(settings.carriers.list.clone()));
        Ok(if others.is_empty() { changes } else { format!("{changes}; restart for {others}") })
    }
}

/// Describes the differences between the carriers and routes.
fn changes(old: &Settings, new: &Settings) -> String {
    let (old, new) = (&old.carriers, &new.carriers);
    let find = |list: &[CarrierSettings], name: &str| {
        list.iter().find(|carrier| carrier.name == name).cloned()
    };
    let mut changes = Vec::new();
    for carrier in &new.list {
        match find(&old.list, &carrier.name) {
            None => changes.push(format!("carrier {} added", carrier.name)),
            Some(known) if known != *carrier => {
                changes.push(format!("carrier {} changed, so it binds again", carrier.name));
            }
            Some(_) => {}
        }
    }
    let removed = old.list.iter().filter(|carrier| find(&new.list, &carrier.name).is_none());
    changes.extend(removed.map(|carrier| format!("carrier {} removed", carrier.name)));
    if old.routes != new.routes {
        changes.push("routes changed".to_owned());
    }
    if changes.is_empty() { "no carrier or route changed".to_owned() } else { changes.join(", ") }
}
