//! Turns whose commit the database didn't answer.

use std::sync::Arc;

use super::inbox::{Inbox, Input};
use super::outcome::{Outcome, lose_all, refuse_all};
use crate::Service;
use crate::error::{Error, Result};
use crate::store::Unanswered;

/// Finds out whether a turn is stored whose commit wasn't answered, and tells those who wait.
pub(super) async fn look_up(
    service: Service,
    inbox: Arc<Inbox>,
    inputs: Vec<Input>,
    outcome: Outcome,
    unanswered: Unanswered,
) {
    let error = match service.store().outcome(unanswered).await {
        Ok(()) => return outcome.tell(inputs, &inbox),
        Err(error) => error,
    };
    tracing::error!(inputs = inputs.len(), detail = ?error, "a turn's commit failed");
    if !matches!(error, Error::Uncertain(_)) {
        return refuse_all(inputs, error);
    }
    match outcome.is_stored(&service).await {
        Ok(Some(true)) => outcome.tell(inputs, &inbox),
        // It may still be under way.
        Ok(Some(false)) if !error.may_be_under_way() => refuse_all(inputs, error),
        Ok(_) => lose_all(inputs, error),
        Err(failed) => {
            tracing::error!(detail = ?failed, "whether a turn is stored can't be found out");
            lose_all(inputs, error);
        }
    }
}

impl Outcome {
    /// Whether a row that only this turn wrote is there; `None` when it wrote none that could tell.
    async fn is_stored(&self, service: &Service) -> Result<Option<bool>> {
        if let Some(id) = self.new_message() {
            return service.is_message_stored(id).await.map(Some);
        }
        match self.claimed_message() {
            Some(message) => service.is_claimed(message, self.lease).await.map(Some),
            None => Ok(None),
        }
    }
}
