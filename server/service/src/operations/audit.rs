//! Who did it.

use std::fmt;

/// Who asks for something that is written into the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// Whoever runs the program.
    CommandLine,
    /// A signed-in account.
    Account(i64),
    /// The service itself, without a person.
    System,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandLine => f.write_str("command line"),
            Self::Account(id) => write!(f, "account {id}"),
            Self::System => f.write_str("system"),
        }
    }
}
