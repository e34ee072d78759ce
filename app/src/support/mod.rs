//! The staff's pages. Whoever is no staff is told that there is nothing here.

mod carriers;
mod home;
#[cfg(feature = "ssr")]
mod readings;

pub use carriers::{CARRIER_EVENTS_PATH, CarriersPage, LiveCarriers};
pub use home::SupportPage;
