//! The `heliograph` binary with carriers: two third-party SMSCs, on npm's `smpp` and on the crate
//! `smpp34`, each in a process of its own, and our own SMSCs that misbehave. The tests compare the
//! API's reports with what the SMSCs received.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "clippy.toml allows them in test functions, and helpers of tests fail no other way"
)]

mod acme;
mod binding;
mod bound_settings;
mod cuts;
mod deciding;
mod figures;
mod health;
mod holding;
mod http;
mod inbound;
mod outcomes;
mod parameters;
mod peer;
mod providers;
mod receipts;
mod refusals;
mod reloads;
mod restarts;
mod routes;
mod scripted;
mod sending;
mod shown;
mod started;
mod texts;
mod trials;
mod unanswered;
mod upstream;

/// Makes a test with each SMSC from functions with the kind as parameter.
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
