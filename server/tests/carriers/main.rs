//! The `heliograph` binary with an SMPP carrier that others wrote: an SMSC on npm's `smpp` and one on the crate
//! `smpp34`, each a process of its own. What the API reports is compared with what the SMSC saw.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "clippy.toml allows them in test functions, and helpers of tests fail no other way"
)]

#[path = "../api/client.rs"]
#[expect(dead_code, reason = "the tests of the API use the rest")]
mod client;
#[path = "../api/harness.rs"]
#[expect(dead_code, reason = "the tests of the API use the rest")]
mod harness;

mod binding;
mod cuts;
mod outcomes;
mod peer;
mod sending;
mod texts;

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
