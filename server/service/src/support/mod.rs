//! What staff look up at the desk: the audit log, accounts with notes, messages, and a search over
//! all of them.

pub(crate) mod accounts;
mod approvals;
pub(crate) mod audit;
mod messages;
mod search;
