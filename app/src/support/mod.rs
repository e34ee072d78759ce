//! The pages of staff. Other accounts get 404.

mod account;
mod accounts;
mod applications;
mod approvals;
mod assign;
mod audit;
mod carrier;
mod carriers;
mod deposits;
mod desk;
mod home;
mod import;
mod inbound;
mod incidents;
mod lists;
mod mails;
mod margin;
mod marked_email;
mod masked;
mod message;
mod numbers;
mod prices;
mod receipts;
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
pub use deposits::DepositsPage;
pub use home::SupportPage;
pub use import::{
    IMPORT_FILE_PATH, IMPORT_PATH, ImportPage, REFUSED_FILE, UNKNOWN_COLUMNS, UnknownColumns,
};
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
