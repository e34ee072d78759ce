//! The pages of staff. Other accounts get 404.

mod account;
mod accounts;
mod applications;
mod approvals;
mod assign;
mod audit;
mod carrier;
mod carriers;
mod confirm;
#[cfg(feature = "ssr")]
mod consequences;
mod deposits;
mod desk;
mod frame;
mod home;
mod import;
mod inbound;
mod incidents;
mod links;
mod lists;
mod mails;
mod margin;
mod marked_email;
mod masked;
mod message;
mod numbers;
mod prices;
mod queues;
mod readiness;
mod receipts;
#[cfg(feature = "ssr")]
mod reset_link;
mod search;
mod senders;
mod viewers;
mod visit;

pub use account::SupportAccountPage;
pub use accounts::SupportAccountsPage;
pub use applications::SupportApplicationsPage;
pub use approvals::ApprovalsPage;
pub use assign::AssignPage;
pub use audit::{AUDIT_CSV_PATH, AuditAddress, AuditPage};
pub use carriers::{CARRIER_EVENTS_PATH, CarriersNow, CarriersPage};
pub use confirm::ConfirmActPage;
pub use deposits::DepositsPage;
pub use frame::DeskFrame;
pub use home::SupportPage;
pub use import::{IMPORT_FILE_PATH, IMPORT_PATH, ImportPage, REFUSED_FILE};
pub use inbound::UnassignedPage;
pub use mails::MailsPage;
#[cfg(feature = "ssr")]
pub use margin::days as margin_days;
pub use margin::{MARGIN_CSV_PATH, MarginPage};
pub use message::SupportMessagePage;
pub use numbers::NumbersPage;
pub use prices::SupportPricesPage;
pub use receipts::CarrierReceiptsPage;
pub use search::SupportSearchPage;
pub use senders::SendersPage;
pub use visit::VisitPage;
