//! What operators need: checks, copies, the dropping of history, the processes that serve.

pub(crate) mod check;
pub(crate) mod copy;
pub(crate) mod history;
pub(crate) mod nodes;
pub(crate) mod upkeep;
