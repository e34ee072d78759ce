//! My Applications: the list of applications, a new application, and the pages of an application.

use domain::records::ApplicationRecord;
use domain::{Category, SenderState, SenderStatus};

mod account_overview;
mod alarms;
mod application_view;
mod call_log;
mod characters;
mod codes;
mod deposits;
mod first_steps;
mod frame;
mod history;
mod inbox;
mod keys;
mod limit_trial;
mod limits;
mod list;
mod messages;
mod name;
mod new;
mod new_keys;
mod next_step;
mod notices;
mod overview;
#[cfg(feature = "ssr")]
mod programs;
mod quick_start;
mod readiness;
mod scheduled;
mod sender;
mod settings;
mod shown_once;
mod start;
mod statement;
mod statement_query;
mod unconfirmed;

#[cfg(feature = "ssr")]
pub use application_view::owned;
pub use codes::CodesPage;
pub use deposits::{DepositSlipPage, ReceiptPage};
pub use first_steps::FIRST_STEPS_EVENTS_PATH;
pub use frame::ApplicationFrame;
pub use inbox::{INBOUND_CSV_PATH, INBOUND_EVENTS_PATH, InboxFilter, InboxPage};
#[cfg(feature = "ssr")]
pub use inbox::{inbound_filter, newest_inbound};
pub use keys::KeysPage;
pub use list::ApplicationsPage;
pub use messages::MessagesPage;
pub use new::NewApplicationPage;
pub use new_keys::NewKeys;
pub use overview::{ApplicationPage, Overview};
pub use readiness::can_send;
pub use sender::SenderNamePage;
pub use settings::SettingsPage;
pub use shown_once::Once;
pub use start::QuickStartPage;
pub use statement::{STATEMENT_CSV_PATH, StatementPage, statement};
pub use statement_query::StatementQuery;

/// Returns the sender name that recipients see. `default` stands for the one of applications
/// without a name.
pub fn sender_in_use(application: &ApplicationRecord, default: &str) -> String {
    match (&application.sender_name, application.sender_state, application.category) {
        (Some(name), ..) => name.clone(),
        (None, _, Category::Electricity) => "not needed".to_owned(),
        (None, SenderState::Pending | SenderState::Rejected, Category::Sms) => {
            "none yet".to_owned()
        }
        (None, _, Category::Sms) => default.to_owned(),
    }
}

/// Returns the default sender, marked as such.
pub fn by_default(sender: &str) -> String {
    format!("{sender} (default)")
}

/// Returns the sender name for staff: the accepted one, or else the one that waits for a decision.
pub fn sender_for_staff(application: &ApplicationRecord) -> String {
    let requested = application.requested_sender.as_ref();
    match requested.filter(|request| request.status == SenderStatus::Pending) {
        Some(request) if application.sender_name.is_none() => {
            format!("{} (requested)", request.name)
        }
        _ => sender_in_use(application, "default sender"),
    }
}

/// Explains applications of other categories than SMS.
pub const NOT_FOR_SMS: &str = "An Electricity application sends no messages: the SMS API answers \
                           its keys with the code 505.";
