//! The session against a scripted SMSC, over real sockets.

#[path = "../smsc/mod.rs"]
mod smsc;

mod answers;
mod client;
mod closing;
mod cuts;
mod deliveries;
mod links;
mod malformed;
mod pacing;
mod reconnect;
mod tls;
