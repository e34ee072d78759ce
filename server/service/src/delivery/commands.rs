//! Commands about carriers that every running process carries out: reloading the settings, and
//! binding again.
//!
//! A command on a machine can't reach the processes on others, so it goes through the database.

use std::time::{Duration, Instant};

use domain::timestamp::DAY_MS;

use crate::transactions::work;
use crate::{Delivery, run_detached};
use store::audit::{self, Actor};
use store::carrier_commands;
pub use store::carrier_commands::CommandAnswer;
use store::error::Result;
use store::gate::Priority;

/// How long a command waits for the answers of all processes.
const ANSWERS_TIMEOUT: Duration = Duration::from_secs(15);
/// The pause between two looks for answers.
const PAUSE: Duration = Duration::from_millis(200);
/// How long commands are kept, in milliseconds. Processes notice them within a second.
const KEPT_MS: i64 = DAY_MS;

/// A command to all processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CarrierCommand {
    /// Read carriers and routes from the settings file again.
    Reload,
    /// Close the connections to this carrier, and open them again.
    Rebind(String),
}

impl CarrierCommand {
    fn carrier(&self) -> Option<&str> {
        match self {
            Self::Reload => None,
            Self::Rebind(carrier) => Some(carrier),
        }
    }
}

impl Delivery<'_> {
    /// Gives a command to all running processes, and waits until they have answered, or some time
    /// has passed. Returns the answers, and the number of processes that should have answered.
    ///
    /// # Errors
    /// `NoSuchCarrier`.
    pub async fn command_carriers(
        &self,
        actor: &Actor,
        command: CarrierCommand,
    ) -> Result<(Vec<CommandAnswer>, usize)> {
        if let Some(carrier) = command.carrier() {
            self.must_have_carrier(carrier)?;
        }
        let actor = *actor;
        let id = self.in_transaction(work!(|tx, now| {
            let (carrier, old) = (command.carrier(), now.plus_ms(-KEPT_MS));
            let id = carrier_commands::insert(tx, carrier, now, old).await?;
            let action = match &command {
                CarrierCommand::Reload => "carrier.reload",
                CarrierCommand::Rebind(_) => "carrier.rebind",
            };
            audit::insert(tx, now, &actor, action, carrier.unwrap_or_default(), None).await?;
            Ok(id)
        }));
        let id = id.await?;
        let asked_at = Instant::now();
        loop {
            let answers = carrier_commands::answers(&mut self.store().read().await?, id).await?;
            // A process that has SQLite's file for itself is no node.
            let expected = self.0.operations().running_nodes().await?.max(1);
            if answers.len() >= expected || asked_at.elapsed() > ANSWERS_TIMEOUT {
                return Ok((answers, expected));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Returns the ID of the newest command.
    pub async fn newest_command(&self) -> Result<i64> {
        carrier_commands::newest(&mut self.store().read().await?).await
    }

    /// Returns the commands after the one with this ID, each with its ID.
    pub async fn commands_after(&self, id: i64) -> Result<Vec<(i64, CarrierCommand)>> {
        let rows = carrier_commands::after(&mut self.store().read().await?, id).await?;
        let command = |carrier: Option<String>| {
            carrier.map_or(CarrierCommand::Reload, CarrierCommand::Rebind)
        };
        Ok(rows.into_iter().map(|(id, carrier)| (id, command(carrier))).collect())
    }

    /// Stores this process's answer to a command: what it did, or why it did nothing.
    pub async fn answer_command(
        &self,
        id: i64,
        answer: std::result::Result<String, String>,
    ) -> Result<()> {
        let service = self.0.clone();
        run_detached(async move {
            let refused = answer.is_err();
            let (Ok(text) | Err(text)) = answer;
            let answer = CommandAnswer { node: service.inner.node.slot(), refused, text };
            let mut tx = service.store().begin_as(Priority::Bulk).await?;
            carrier_commands::answer(&mut tx, id, &answer).await?;
            tx.commit().await
        })
        .await
    }
}
