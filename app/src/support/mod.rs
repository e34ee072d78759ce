//! The pages of staff. To everybody else they don't exist.

mod carrier;
mod carriers;
mod home;

pub use carriers::{CARRIER_EVENTS_PATH, CarriersNow, CarriersPage};
pub use home::SupportPage;
