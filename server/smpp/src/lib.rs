//! An SMPP 3.4 ESME session: one bind (or a transmitter's and a receiver's) that is kept up until
//! it is closed. Submits go in, answers and deliveries come out as events.
//!
//! What it promises: exactly one first [`Event::Answer`] for each [`Submit`]; [`Outcome::NotSent`]
//! only when the peer can't have received all of the submit; never more submits unanswered than the
//! window, and after submits without an answer one at a time until one is answered, on whatever
//! bind; nothing acknowledged by itself.
//!
//! Time is tokio's; the only randomness, the jitter of reconnects, comes from a seed.

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
