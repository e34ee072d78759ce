//! The `heliograph` binary with carriers: SMSCs that others wrote, on npm's `smpp` and on the crate
//! `smpp34`, each a process of its own, and some of our own that misbehave. What the API reports is
//! compared with what they saw.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "clippy.toml allows them in test functions, and helpers of tests fail no other way"
)]

mod acme;
mod binding;
mod cuts;
mod http;
mod outcomes;
mod peer;
mod receipts;
mod refusals;
mod restarts;
mod routes;
mod scripted;
mod sending;
mod started;
mod texts;
mod unanswered;
mod upstream;

/// Makes a test with each SMSC out of functions that take one.
macro_rules! with_both_peers {
    ($($name:ident),+ $(,)?) => {
        mod node {
            $(#[test]
            fn $name() {
                super::$name($crate::peer::Kind::Node);
            })+
        }
        mod smpp34 {
            $(#[test]
            fn $name() {
                super::$name($crate::peer::Kind::Smpp34);
            })+
        }
    };
}
pub(crate) use with_both_peers;
