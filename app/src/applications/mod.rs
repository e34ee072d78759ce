//! My Applications: the list of applications, a new application, and one application's page.

mod keys;
mod list;
mod lost_answer;
mod new;
mod new_keys;
mod notices;
mod quick_start;
mod sender;
mod show;
mod statement;

pub use list::ApplicationsPage;
pub use new::NewApplicationPage;
pub use new_keys::NewKeys;
pub use show::{ApplicationPage, Overview};
pub use statement::statement;

/// The word in the place of the sender name of an application that has none.
const NO_SENDER_NAME: &str = "none";
