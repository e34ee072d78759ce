//! The cases that hold on every database. Each file lists its cases in [`on_each_backend`]; one
//! that is left out is dead code, which doesn't compile here.

/// Makes two tests of each case, `sqlite::…` and `postgres::…`.
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

mod accounts;
mod applications;
mod batches;
mod check;
mod clock_set_back;
mod devices;
mod dispatch;
mod history;
mod ledger;
mod lost_answers;
mod model;
mod opening;
mod receipts;
mod reports;
mod routes;
mod segments;
mod sender_names;
mod sends;
mod turn;
