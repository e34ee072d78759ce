//! The steps that take a new customer from the account to the first message.

use serde::{Deserialize, Serialize};

use crate::application::ApplicationStatus;
use crate::records::ApplicationRecord;
use crate::sender_name::{SenderState, SenderStatus};

/// A step. Customers see the steps in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    ConfirmEmail,
    CreateApplication,
    TryTestKey,
    /// A sender name is optional.
    AskForSenderName,
    RequestActivation,
    MakeDeposit,
    SendFirstMessage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepState {
    Done,
    /// The customer can take it now.
    Open,
    /// The customer can take it now, or skip it.
    Optional,
    /// Staff must decide first.
    Waits,
    /// Another step comes first.
    Later,
}

/// The facts that determine the states of the steps.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Whether the email is confirmed, or needs no confirmation.
    pub is_confirmed: bool,
    /// The account's SMS application.
    pub application: Option<&'a ApplicationRecord>,
    /// Whether the customer has sent a message with the test key.
    pub has_tried: bool,
    /// Whether the customer has sent a message with the API key.
    pub has_sent: bool,
}

/// Returns every step with its state. Returns no steps once the customer has sent a message with
/// the API key.
pub fn first_steps(progress: Progress<'_>) -> Vec<(Step, StepState)> {
    if progress.has_sent {
        return Vec::new();
    }
    let done = |is_done| {
        if is_done { StepState::Done } else { StepState::Open }
    };
    let Some(application) = progress.application else {
        let create = if progress.is_confirmed { StepState::Open } else { StepState::Later };
        return vec![
            (Step::ConfirmEmail, done(progress.is_confirmed)),
            (Step::CreateApplication, create),
            (Step::TryTestKey, StepState::Later),
            (Step::AskForSenderName, StepState::Later),
            (Step::RequestActivation, StepState::Later),
            (Step::MakeDeposit, StepState::Later),
            (Step::SendFirstMessage, StepState::Later),
        ];
    };
    let asked = application.requested_sender.as_ref();
    let sender = match asked.map(|request| request.status) {
        _ if application.sender_name.is_some() => StepState::Done,
        Some(SenderStatus::Pending) => StepState::Waits,
        Some(SenderStatus::Rejected) => StepState::Open,
        Some(SenderStatus::Accepted | SenderStatus::Replaced | SenderStatus::Withdrawn) | None => {
            StepState::Optional
        }
    };
    let activation = match application.status {
        ApplicationStatus::Active => StepState::Done,
        ApplicationStatus::Suspended => StepState::Waits,
        ApplicationStatus::Pending if application.activation_requested_at.is_some() => {
            StepState::Waits
        }
        ApplicationStatus::Pending => StepState::Open,
    };
    let deposit = done(application.balance.micros() > 0);
    let may_send = activation == StepState::Done
        && deposit == StepState::Done
        && !matches!(application.sender_state, SenderState::Pending | SenderState::Rejected);
    let send = if may_send { StepState::Open } else { StepState::Later };
    vec![
        (Step::ConfirmEmail, done(progress.is_confirmed)),
        (Step::CreateApplication, StepState::Done),
        (Step::TryTestKey, done(progress.has_tried)),
        (Step::AskForSenderName, sender),
        (Step::RequestActivation, activation),
        (Step::MakeDeposit, deposit),
        (Step::SendFirstMessage, send),
    ]
}
