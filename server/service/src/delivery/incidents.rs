//! Incident notes: staff write and end them, customers read them.

use domain::incident::{INCIDENTS_MAX, IncidentRecord, parse_incident};

use crate::Delivery;
use crate::transactions::work;
use store::audit::{self, Actor};
use store::error::{Refusal, Result};
use store::incidents;

impl Delivery<'_> {
    /// Returns the open notes, oldest first.
    pub async fn incidents(&self) -> Result<Vec<IncidentRecord>> {
        incidents::open(&mut self.store().read().await?).await
    }

    /// Opens a note, which customers see from now on. Only staff see the carrier that it is about.
    ///
    /// # Errors
    /// `IncidentInvalid`, `NoSuchCarrier`, `TooManyIncidents`.
    pub async fn open_incident(
        &self,
        actor: &Actor,
        text: &str,
        carrier: Option<&str>,
    ) -> Result<IncidentRecord> {
        let text = parse_incident(text).map_err(Refusal::from)?;
        if let Some(name) = carrier {
            self.must_have_carrier(name)?;
        }
        let (actor, carrier) = (*actor, carrier.map(str::to_owned));
        self.in_transaction(work!(|tx, now| {
            if incidents::open(tx).await?.len() >= INCIDENTS_MAX {
                return Err(Refusal::TooManyIncidents.into());
            }
            let id = incidents::insert(tx, &text, carrier.as_deref(), now).await?;
            let (action, subject) = ("incident.open", id.to_string());
            audit::insert(tx, now, &actor, action, &subject, Some(&text)).await?;
            Ok(IncidentRecord { id, text, carrier, began_at: now })
        }))
        .await
    }

    /// Ends a note. Customers no longer see it.
    ///
    /// # Errors
    /// `NoSuchIncident`.
    pub async fn end_incident(&self, actor: &Actor, id: i64) -> Result<IncidentRecord> {
        let actor = *actor;
        self.in_transaction(work!(|tx, now| {
            let ended = incidents::delete(tx, id).await?;
            let ended = ended.ok_or(Refusal::NoSuchIncident)?;
            let (action, subject) = ("incident.end", id.to_string());
            audit::insert(tx, now, &actor, action, &subject, Some(&ended.text)).await?;
            Ok(ended)
        }))
        .await
    }
}
