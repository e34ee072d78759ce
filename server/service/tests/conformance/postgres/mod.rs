//! Tests only for PostgreSQL: several processes, cut connections, the server's clock, and the move
//! from SQLite.

mod agreement;
mod callers_that_leave;
mod clocks;
mod contention;
mod copy;
mod cuts;
mod key_file;
mod killed_server;
mod late_answers;
mod lost_commits;
mod migrations;
mod node_numbers;
mod prices;
mod schema;
mod shards;
mod shared_work;
mod unusual_messages;
mod weeks;
