//! The pages of staff. To everybody else they don't exist.

mod applications;
mod carrier;
mod carriers;
mod desk;
mod home;
mod incidents;
mod lists;
mod looks;
mod mails;
mod margin;
mod prices;
mod senders;

pub use applications::SupportApplicationsPage;
pub use carriers::{CARRIER_EVENTS_PATH, CarriersNow, CarriersPage};
pub use home::SupportPage;
pub use mails::MailsPage;
#[cfg(feature = "ssr")]
pub use margin::days as margin_days;
pub use margin::{MARGIN_CSV_PATH, MarginPage};
pub use prices::SupportPricesPage;
pub use senders::SendersPage;
