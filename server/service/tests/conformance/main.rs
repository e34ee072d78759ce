//! Tests of the service with a controlled clock and seeded randomness. The cases in `cases` run on
//! SQLite and on PostgreSQL. `sqlite` and `postgres` have the tests for only one of them.

#![expect(
    clippy::unwrap_used,
    reason = "clippy.toml allows them in test functions, and helpers of tests fail no other way"
)]
// Finds cases that no test runs: they are dead code.
#![deny(dead_code)]

/// Generates two tests for each case, `sqlite::…` and `postgres::…`.
macro_rules! on_each_backend {
    ($($case:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $case() {
                super::$case(crate::database::Backend::Sqlite).await;
            })+
        }
        mod postgres {
            $(#[tokio::test]
            async fn $case() {
                super::$case(crate::database::Backend::Postgres).await;
            })+
        }
    };
}

mod cases;
mod complete;
mod database;
mod network;
mod postgres;
mod processes;
mod restores;
mod sending;
mod sqlite;
mod timing;
mod uploads;
mod world;
