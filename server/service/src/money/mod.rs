//! Money: deposits, what an application has, and what is given back.

pub(crate) mod deposits;
pub(crate) mod funds;
pub(crate) mod releases;
