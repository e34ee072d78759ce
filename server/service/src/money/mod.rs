//! Money: deposits, bank statements, an application's funds, and releases.

pub(crate) mod deposits;
pub(crate) mod funds;
pub(crate) mod releases;
mod statement_amounts;
mod statement_columns;
mod statement_days;
pub(crate) mod statement_file;
pub(crate) mod statements;
pub(crate) mod test_money;
