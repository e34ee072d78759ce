//! The support pages: the audit log, accounts with notes, messages, approvals, and a search.

pub(crate) mod accounts;
mod approvals;
pub(crate) mod audit;
pub(crate) mod messages;
mod search;
pub(crate) mod settling;
