//! States and moments, shown the same everywhere.

use domain::records::{BatchStatus, CarrierState, ConnectionState};
use domain::{ApplicationStatus, MessageStatus, SenderStatus, Timestamp};
use leptos::prelude::*;

/// How a state looks. Each tone has a shape of its own, so that it is told without its
/// colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// A filled circle: all is well.
    Good,
    /// A ring: it waits.
    Waiting,
    /// A half-filled circle: it is under way.
    Moving,
    /// A triangle: it needs attention.
    Bad,
    /// A diamond: it isn't known yet.
    Unclear,
}

impl Tone {
    const fn class(self) -> &'static str {
        match self {
            Self::Good => "state state-good",
            Self::Waiting => "state state-waiting",
            Self::Moving => "state state-moving",
            Self::Bad => "state state-bad",
            Self::Unclear => "state state-unclear",
        }
    }
}

impl From<ApplicationStatus> for Tone {
    fn from(status: ApplicationStatus) -> Self {
        match status {
            ApplicationStatus::Pending => Self::Waiting,
            ApplicationStatus::Active => Self::Good,
            ApplicationStatus::Suspended => Self::Bad,
        }
    }
}

impl From<SenderStatus> for Tone {
    fn from(status: SenderStatus) -> Self {
        match status {
            SenderStatus::Pending => Self::Waiting,
            SenderStatus::Accepted => Self::Good,
            SenderStatus::Rejected => Self::Bad,
            SenderStatus::Replaced => Self::Unclear,
        }
    }
}

impl From<MessageStatus> for Tone {
    fn from(status: MessageStatus) -> Self {
        match status {
            MessageStatus::Queued => Self::Waiting,
            MessageStatus::Sending | MessageStatus::Submitted => Self::Moving,
            MessageStatus::Delivered => Self::Good,
            MessageStatus::Unknown => Self::Unclear,
            MessageStatus::Failed | MessageStatus::Expired | MessageStatus::Rejected => Self::Bad,
        }
    }
}

impl From<BatchStatus> for Tone {
    fn from(status: BatchStatus) -> Self {
        match status {
            BatchStatus::Expanding => Self::Waiting,
            BatchStatus::Sending => Self::Moving,
            BatchStatus::Done => Self::Good,
        }
    }
}

impl From<CarrierState> for Tone {
    fn from(state: CarrierState) -> Self {
        match state {
            CarrierState::Up => Self::Good,
            CarrierState::Drained => Self::Waiting,
            CarrierState::Down => Self::Bad,
        }
    }
}

impl From<ConnectionState> for Tone {
    fn from(state: ConnectionState) -> Self {
        match state {
            ConnectionState::Bound => Self::Good,
            ConnectionState::Connecting => Self::Moving,
            ConnectionState::Probing | ConnectionState::Waiting => Self::Bad,
            ConnectionState::Closed => Self::Waiting,
        }
    }
}

/// A state: its word, after the shape of its tone.
#[component]
pub fn StateMark(#[prop(into)] tone: Tone, word: &'static str) -> impl IntoView {
    view! { <span class=tone.class()>{word}</span> }
}

/// A moment in UTC, shown to the second; its attribute has the milliseconds.
#[component]
pub fn Moment(at: Timestamp) -> impl IntoView {
    view! { <time datetime=at.to_string()>{at.to_table()}</time> }
}
