//! Operators' tasks: the check, copies, distribution, dropping history, and the serving processes.

pub(crate) mod check;
pub(crate) mod copy;
pub(crate) mod distribute;
pub(crate) mod examination;
pub(crate) mod history;
pub(crate) mod hold;
pub(crate) mod last_commit;
pub(crate) mod nodes;
pub(crate) mod reconciling;
pub(crate) mod recount;
pub(crate) mod unpaid;
pub(crate) mod upkeep;
