//! The pages of staff. To everybody else they don't exist.

mod applications;
mod assign;
mod carrier;
mod carriers;
mod deposits;
mod home;
mod import;
mod lists;
mod mails;
mod senders;

pub use applications::SupportApplicationsPage;
pub use assign::AssignPage;
pub use carriers::{CARRIER_EVENTS_PATH, CarriersNow, CarriersPage};
pub use deposits::DepositsPage;
pub use home::SupportPage;
pub use import::{
    IMPORT_FILE_PATH, IMPORT_PATH, ImportPage, REFUSED_FILE, UNKNOWN_COLUMNS, UnknownColumns,
};
pub use mails::MailsPage;
pub use senders::SendersPage;
