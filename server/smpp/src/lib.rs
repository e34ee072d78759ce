//! An SMPP 3.4 ESME session. The session keeps one bind up (or a transmitter bind and a receiver
//! bind) until the caller closes it. The caller submits messages and reads answers and deliveries
//! as events.
//!
//! The session guarantees:
//! - Each [`Submit`] gets one [`Event::Answer`], and a second one only if the peer answers late.
//! - [`Outcome::NotSent`] means that the peer can't have received the whole submit.
//! - The number of unanswered submits never exceeds the window. After a submit gets no answer, the
//!   session sends one submit at a time until one is answered, even after a reconnect.
//! - The session never acknowledges a delivery on its own.
//!
//! All timing uses tokio's clock. The only randomness is the jitter of the backoff, which comes
//! from a seed.

mod backoff;
pub mod command_status;
mod connection;
mod encode;
mod fault;
mod frames;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod guard;
mod incoming;
mod link;
mod message;
mod outbox;
mod pace;
pub mod receipt;
mod session;
mod settings;
mod shared;
mod socket;
mod status;
mod stream;
mod throttle;
mod timing;
mod tls;
pub mod trace;
mod window;

pub use connection::{Connection, Events};
pub use fault::{Fault, FaultKind, Words};
pub use message::{
    Address, Delivery, DeliveryHandle, Event, Outcome, Submit, Tlv, UnknownCause, status_code,
};
pub use pace::SharedPace;
pub use settings::{Backup, BindMode, ClientCertificate, Settings, Timers, Tls};
pub use status::{LastError, State, Status, UNACKNOWLEDGED_LIMIT};
pub use stream::probe;
pub use throttle::Reaction;
pub use tls::client_that_trusts;
pub use window::LATE_ANSWERS_MAX;
