//! The cases that hold on every database. Each file lists its cases in `on_each_backend`, which
//! makes them into tests of the suite; one that is left out is dead code, which doesn't compile.

mod accounts;
mod applications;
mod audit;
mod batches;
mod check;
mod clock_set_back;
mod deposits;
mod desk_accounts;
mod devices;
mod dispatch;
mod history;
mod incidents;
mod ledger;
mod looks;
mod lost_answers;
mod mails;
mod margins;
mod model;
mod opening;
mod passkeys;
mod prices;
mod receipts;
mod reports;
mod review;
mod routes;
mod search;
mod second_factors;
mod segments;
mod sender_names;
mod sends;
mod staff;
mod statements;
mod turn;
