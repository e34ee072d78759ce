//! States in one style for all pages.

use domain::endpoint_check::Verdict;
use domain::records::{ApplicationRecord, BatchStatus, CarrierState, ConnectionState};
use domain::status::Mark;
use domain::webhook::{AttemptRecord, WebhookRecord};
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

macro_rules! states {
    ($($status:ident { $($($variant:ident)|+ => $class:expr,)+ })+) => {
        $(impl From<$status> for State {
            fn from(status: $status) -> Self {
                let class = match status {
                    $($($status::$variant)|+ => $class,)+
                };
                Self(class, status.as_str())
            }
        })+
    };
}

states! {
    ApplicationStatus { Pending => WAITING, Active => GOOD, Suspended => BAD, }
    SenderStatus {
        Pending => WAITING,
        Accepted => GOOD,
        Rejected => BAD,
        Replaced | Withdrawn => UNCLEAR,
    }
    BatchStatus {
        Expanding => WAITING, Sending => MOVING, Done => GOOD, Scheduled => WAITING,
        Paused => WAITING, Cancelled => WAITING,
    }
    CarrierState { Up => GOOD, Drained => WAITING, Degraded | Down => BAD, }
    ConnectionState {
        Bound => GOOD,
        Connecting => MOVING,
        Probing | Degraded | Waiting => BAD,
        Closed => WAITING,
    }
    MailState { Queued | Kept => WAITING, Sending => MOVING, Sent => GOOD, Failed => BAD, }
}

/// An application, as staff see it. The keys of a closed or disabled account don't work, whatever
/// the status of its applications is.
impl From<&ApplicationRecord> for State {
    fn from(application: &ApplicationRecord) -> Self {
        if application.account_closed {
            Self(UNCLEAR, "Account closed")
        } else if application.account_disabled {
            Self(BAD, "Account disabled")
        } else {
            application.status.into()
        }
    }
}

impl From<&WebhookRecord> for State {
    fn from(endpoint: &WebhookRecord) -> Self {
        match (endpoint.disabled, endpoint.failing_since) {
            (Some(_), _) => Self(BAD, "disabled"),
            (None, Some(_)) => Self(BAD, "failing"),
            (None, None) => Self(GOOD, "active"),
        }
    }
}

impl From<&AttemptRecord> for State {
    fn from(attempt: &AttemptRecord) -> Self {
        if attempt.delivered { Self(GOOD, "delivered") } else { Self(BAD, "failed") }
    }
}

impl From<Verdict> for State {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Good => Self(GOOD, "good"),
            Verdict::Advice => Self(UNCLEAR, "advice"),
            Verdict::Bad => Self(BAD, "problem"),
        }
    }
}

impl From<MessageStatus> for State {
    fn from(status: MessageStatus) -> Self {
        let class = match status.mark() {
            Mark::Good => GOOD,
            Mark::Waiting => WAITING,
            Mark::Moving => MOVING,
            Mark::Bad => BAD,
            Mark::Unclear => UNCLEAR,
        };
        Self(class, status.as_str())
    }
}

/// A state's text. The shape of its class precedes the text.
#[component]
pub fn StateMark(#[prop(into)] state: State) -> impl IntoView {
    let State(class, word) = state;
    view! { <span class=class>{word}</span> }
}
