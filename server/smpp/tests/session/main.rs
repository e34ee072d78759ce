//! The session against a scripted SMSC, over real sockets.

#![expect(
    clippy::unwrap_used,
    reason = "clippy.toml allows it in test functions, and helpers of tests fail no other way"
)]

mod answers;
mod client;
mod closing;
mod cuts;
mod deliveries;
mod faults;
mod holding;
mod idle;
mod links;
mod malformed;
mod pacing;
mod pausing;
mod probing;
mod reconnect;
mod tls;
