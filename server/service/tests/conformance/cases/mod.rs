//! The cases that hold on every database. Each file lists its cases in `on_each_backend`, which
//! makes them into tests of the suite; one that is left out is dead code, which doesn't compile.

mod accounts;
mod applications;
mod batches;
mod check;
mod clock_set_back;
mod deposits;
mod devices;
mod dispatch;
mod history;
mod ledger;
mod lost_answers;
mod mails;
mod model;
mod opening;
mod receipts;
mod reports;
mod review;
mod routes;
mod second_factors;
mod segments;
mod sender_names;
mod sends;
mod staff;
mod statements;
mod turn;
