//! What operators need: the check, copies, the dropping of history, and the processes that serve.

pub(crate) mod check;
pub(crate) mod copy;
pub(crate) mod distribute;
pub(crate) mod history;
pub(crate) mod nodes;
pub(crate) mod unpaid;
pub(crate) mod upkeep;
