//! Commands about carriers that running processes carry out: reloading the settings, binding again,
//! sending a test message, and tracing connections.
//!
//! A command on a machine can't reach the processes on others, so it goes through the database.

use std::time::{Duration, Instant};

use domain::{Kind, Number};
use serde::{Deserialize, Serialize};

use crate::transactions::work;
use crate::{Delivery, run_detached};
use store::audit::{self, Actor};
use store::carrier_commands;
pub use store::carrier_commands::{AnswerState, CommandAnswer};
use store::error::Result;
use store::gate::Priority;

/// How long a command waits for the answers of all processes.
pub const ANSWERS_TIMEOUT: Duration = Duration::from_secs(15);
/// The pause between two queries for answers.
pub const ANSWERS_PAUSE: Duration = Duration::from_millis(200);
/// How long commands and the answers to them are kept, even if the program that gave a command ended
/// first. They may have numbers and texts. No command takes longer.
const KEPT_MS: i64 = 15 * 60_000;

/// A command to running processes. Stored as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CarrierCommand {
    /// Read carriers and routes from the settings file again.
    Reload,
    /// Close the connections to this carrier, and open them again.
    Rebind(String),
    /// Send a message to see whether it arrives. One process does this.
    Test(TestCommand),
    /// Copy the PDUs on the connections to this carrier.
    Trace(TraceCommand),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCommand {
    pub carrier: String,
    pub digits: String,
    pub kind: Kind,
    /// The default sender if `None`.
    pub sender: Option<String>,
    pub text: String,
}

impl TestCommand {
    pub fn number(&self) -> Number {
        Number::from_stored(self.digits.clone(), self.kind)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceCommand {
    pub carrier: String,
    pub seconds: u64,
    /// Whether numbers and texts are shown.
    pub all: bool,
}

impl CarrierCommand {
    fn carrier(&self) -> Option<&str> {
        match self {
            Self::Reload => None,
            Self::Rebind(carrier)
            | Self::Test(TestCommand { carrier, .. })
            | Self::Trace(TraceCommand { carrier, .. }) => Some(carrier),
        }
    }

    const fn action(&self) -> &'static str {
        match self {
            Self::Reload => "carrier.reload",
            Self::Rebind(_) => "carrier.rebind",
            Self::Test(_) => "carrier.test",
            Self::Trace(_) => "carrier.trace",
        }
    }

    /// Returns what the audit log says about the command.
    fn detail(&self) -> Option<String> {
        match self {
            Self::Reload | Self::Rebind(_) => None,
            Self::Test(test) => Some(format!("to {}", test.number().masked())),
            Self::Trace(TraceCommand { seconds, all, .. }) => {
                let shown = if *all { ", with numbers and texts" } else { "" };
                Some(format!("{seconds} seconds{shown}"))
            }
        }
    }
}

impl Delivery<'_> {
    /// Gives a command to the running processes. Returns its ID, and the number of processes.
    ///
    /// # Errors
    /// `NoSuchCarrier`.
    pub async fn give_command(
        &self,
        actor: &Actor,
        command: CarrierCommand,
    ) -> Result<(i64, usize)> {
        if let Some(carrier) = command.carrier() {
            self.must_have_carrier(carrier)?;
        }
        let actor = *actor;
        let stored = store::row::json(&command)?;
        let id = self.in_transaction(work!(|tx, now| {
            let id = carrier_commands::insert(tx, &stored, now).await?;
            let (subject, detail) = (command.carrier().unwrap_or_default(), command.detail());
            let (action, detail) = (command.action(), detail.as_deref());
            audit::insert(tx, now, &actor, action, subject, detail).await?;
            Ok(id)
        }));
        // The process that serves a SQLite file isn't a node.
        let processes = self.0.operations().running_nodes().await?.max(1);
        Ok((id.await?, processes))
    }

    /// Gives a command to all running processes, and waits for their answers, at most
    /// [`ANSWERS_TIMEOUT`]. Returns the answers, and the number of processes that should have
    /// answered.
    ///
    /// # Errors
    /// `NoSuchCarrier`.
    pub async fn command_carriers(
        &self,
        actor: &Actor,
        command: CarrierCommand,
    ) -> Result<(Vec<CommandAnswer>, usize)> {
        let (id, expected) = self.give_command(actor, command).await?;
        let asked_at = Instant::now();
        loop {
            let answers = self.command_answers(id).await?;
            if answers.len() >= expected || asked_at.elapsed() > ANSWERS_TIMEOUT {
                return Ok((answers, expected));
            }
            tokio::time::sleep(ANSWERS_PAUSE).await;
        }
    }

    /// Returns the answers to a command so far.
    pub async fn command_answers(&self, id: i64) -> Result<Vec<CommandAnswer>> {
        carrier_commands::answers(&mut self.store().read().await?, id).await
    }

    /// Deletes the contents of a command and its answers, which may include a message.
    pub async fn forget_command(&self, id: i64) -> Result<()> {
        self.in_transaction(work!(|tx, _now| carrier_commands::forget(tx, id).await)).await
    }

    /// Returns the ID of the newest command.
    pub async fn newest_command(&self) -> Result<i64> {
        carrier_commands::newest(&mut self.store().read().await?).await
    }

    /// Returns the commands after the one with this ID, each with its ID. `None` stands for a
    /// command that is over, or that this release doesn't know.
    pub async fn commands_after(&self, id: i64) -> Result<Vec<(i64, Option<CarrierCommand>)>> {
        let rows = carrier_commands::after(&mut self.store().read().await?, id).await?;
        Ok(rows.into_iter().map(|(id, json)| (id, serde_json::from_str(&json).ok())).collect())
    }

    /// Takes a command that only one process carries out. Returns false if another one has it.
    pub async fn take_command(&self, id: i64) -> Result<bool> {
        let node = self.inner.node.slot();
        self.in_transaction(work!(|tx, _now| carrier_commands::take(tx, id, node).await)).await
    }

    /// Deletes old commands and their answers.
    pub async fn forget_commands(&self) -> Result<()> {
        self.in_transaction(work!(|tx, now| {
            carrier_commands::forget_old(tx, now.plus_ms(-KEPT_MS)).await
        }))
        .await
    }

    /// Stores this process's answer to a command. `number` counts its answers from 1. Returns false
    /// if the command is over.
    pub async fn answer_command(
        &self,
        id: i64,
        number: i64,
        state: AnswerState,
        text: String,
    ) -> Result<bool> {
        let service = self.0.clone();
        run_detached(async move {
            let (node, at) = (service.inner.node.slot(), service.now());
            let answer = CommandAnswer { node, number, at, state, text };
            let mut tx = service.store().begin_as(Priority::Bulk).await?;
            let is_stored = carrier_commands::answer(&mut tx, id, &answer).await?;
            tx.commit().await?;
            Ok(is_stored)
        })
        .await
    }
}
