//! States in one style for all pages.

use domain::records::{BatchStatus, CarrierState, ConnectionState};
use domain::status::Mark;
use domain::{ApplicationStatus, MailState, MessageStatus, SenderStatus};
use leptos::prelude::*;

// The classes of states. Each has its own shape, so that the states differ without colour too.

/// A filled circle: all is well.
const GOOD: &str = "state state-good";
/// A ring: waiting.
const WAITING: &str = "state state-waiting";
/// A half-filled circle: in progress.
const MOVING: &str = "state state-moving";
/// A triangle: needs attention.
const BAD: &str = "state state-bad";
/// A diamond: not known yet.
const UNCLEAR: &str = "state state-unclear";

/// A state on a page: its class and its text.
#[derive(Clone, Copy)]
pub struct State(&'static str, &'static str);

impl From<ApplicationStatus> for State {
    fn from(status: ApplicationStatus) -> Self {
        let class = match status {
            ApplicationStatus::Pending => WAITING,
            ApplicationStatus::Active => GOOD,
            ApplicationStatus::Suspended => BAD,
        };
        Self(class, status.as_str())
    }
}

impl From<SenderStatus> for State {
    fn from(status: SenderStatus) -> Self {
        let class = match status {
            SenderStatus::Pending => WAITING,
            SenderStatus::Accepted => GOOD,
            SenderStatus::Rejected => BAD,
            SenderStatus::Replaced | SenderStatus::Withdrawn => UNCLEAR,
        };
        Self(class, status.as_str())
    }
}

impl From<MessageStatus> for State {
    fn from(status: MessageStatus) -> Self {
        let class = match status.describe().mark {
            Mark::Good => GOOD,
            Mark::Waiting => WAITING,
            Mark::Moving => MOVING,
            Mark::Bad => BAD,
            Mark::Unclear => UNCLEAR,
        };
        Self(class, status.as_str())
    }
}

impl From<BatchStatus> for State {
    fn from(status: BatchStatus) -> Self {
        let class = match status {
            BatchStatus::Expanding => WAITING,
            BatchStatus::Sending => MOVING,
            BatchStatus::Done => GOOD,
        };
        Self(class, status.as_str())
    }
}

impl From<CarrierState> for State {
    fn from(state: CarrierState) -> Self {
        let class = match state {
            CarrierState::Up => GOOD,
            CarrierState::Drained => WAITING,
            CarrierState::Down => BAD,
        };
        Self(class, state.as_str())
    }
}

impl From<ConnectionState> for State {
    fn from(state: ConnectionState) -> Self {
        let class = match state {
            ConnectionState::Bound => GOOD,
            ConnectionState::Connecting => MOVING,
            ConnectionState::Probing | ConnectionState::Waiting => BAD,
            ConnectionState::Closed => WAITING,
        };
        Self(class, state.as_str())
    }
}

impl From<MailState> for State {
    fn from(state: MailState) -> Self {
        let class = match state {
            MailState::Queued | MailState::Kept => WAITING,
            MailState::Sending => MOVING,
            MailState::Sent => GOOD,
            MailState::Failed => BAD,
        };
        Self(class, state.as_str())
    }
}

/// A state's text. The shape of its class precedes the text.
#[component]
pub fn StateMark(#[prop(into)] state: State) -> impl IntoView {
    let State(class, word) = state;
    view! { <span class=class>{word}</span> }
}
