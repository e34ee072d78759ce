//! An SMPP 3.4 ESME session: one bind (or a transmitter's and a receiver's) that is kept up until
//! it is closed. Submits go in, answers and deliveries come out as events.
//!
//! Promises of the session:
//! - Each [`Submit`] gets one [`Event::Answer`], and a second one only when the peer's answer comes
//!   late.
//! - [`Outcome::NotSent`] means that the peer can't have received all of the submit.
//! - No more submits are unanswered than the window holds. After submits that got no answer, they
//!   go out one at a time until one is answered, on whatever bind.
//! - The session acknowledges no delivery by itself.
//!
//! Time is tokio's. The only randomness, the jitter of the back-off, comes from a seed.

mod backoff;
mod connection;
mod encode;
mod frames;
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
mod window;

pub use connection::{Connection, Events};
pub use message::{
    Address, Delivery, DeliveryHandle, Event, Outcome, Submit, UnknownCause, status_code,
};
pub use settings::{BindMode, Settings, Timers, Tls};
pub use status::{State, Status, UNACKNOWLEDGED_LIMIT};
pub use window::LATE_ANSWERS_MAX;
