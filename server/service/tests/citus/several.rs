//! Several processes on one database: tests from the conformance suite.

#[path = "../conformance/postgres/agreement.rs"]
mod agreement;
#[path = "../conformance/postgres/callers_that_leave.rs"]
mod callers_that_leave;
#[path = "../conformance/postgres/clocks.rs"]
mod clocks;
#[path = "../conformance/postgres/contention.rs"]
mod contention;
#[path = "../conformance/postgres/cuts.rs"]
mod cuts;
#[path = "../conformance/postgres/shared_work.rs"]
mod shared_work;
#[path = "../conformance/postgres/weeks.rs"]
mod weeks;
