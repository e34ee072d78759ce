//! The session against a scripted SMSC, over real sockets.

#[path = "../smsc/mod.rs"]
mod smsc;

mod answers;
mod client;
