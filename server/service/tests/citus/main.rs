//! Tests of the service on a database that is distributed over the workers of a Citus cluster: the
//! cases of the conformance suite, its tests with several processes, and tests that need a cluster.

#![expect(
    clippy::unwrap_used,
    reason = "clippy.toml allows them in test functions, and helpers of tests fail no other way"
)]
#![expect(clippy::unused_self, reason = "test databases of all kinds have the same methods")]

/// Generates a test for each case.
macro_rules! on_each_backend {
    ($($case:ident),+ $(,)?) => {
        mod citus {
            $(#[tokio::test]
            async fn $case() {
                super::$case(crate::database::Backend::Citus).await;
            })+
        }
    };
}

mod append_only;
#[path = "../conformance/cases/mod.rs"]
mod cases;
mod commits;
mod database;
#[path = "../conformance/network.rs"]
mod network;
mod outages;
#[path = "../conformance/processes.rs"]
mod processes;
#[path = "../conformance/sending.rs"]
mod sending;
mod several;
mod storm;
#[path = "../conformance/uploads.rs"]
mod uploads;
#[path = "../conformance/world.rs"]
mod world;
