//! My Applications: the list, a new one, one with all that belongs to it.

pub mod keys;
mod list;
mod lost_answer;
mod new;
mod quick_start;
mod sender;
mod show;
mod statement;

pub use list::ApplicationsPage;
pub use new::NewApplicationPage;
pub use show::ApplicationPage;

/// What an application without a name of its own shows in the place of one.
const NO_SENDER_NAME: &str = "none";
