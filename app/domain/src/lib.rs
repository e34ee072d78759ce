//! The business rules of Heliograph as pure code: no I/O, no clock, no randomness.
//!
//! Everything here compiles for the server and for the browser. The same code validates a form
//! while a person types and when the server receives it.

pub mod account;
pub mod address_range;
pub mod admission;
pub mod api_key;
pub mod application;
pub mod application_name;
pub mod approval;
pub mod audit_action;
pub mod billing;
pub mod browser;
pub mod bulk;
pub mod carrier_figures;
pub mod decision;
pub mod delivery_error;
pub mod desk_act;
pub mod endpoint_check;
pub mod event;
pub mod first_steps;
mod folding;
pub mod history;
pub mod home_country;
pub mod ids;
pub mod inbound;
pub mod incident;
pub mod keyword;
pub mod leak;
pub mod ledger;
pub mod limit_trial;
pub mod limits;
pub mod mail;
pub mod message;
pub mod message_id_form;
pub mod money;
pub mod month;
pub mod note;
pub mod number;
pub mod opening_hours;
pub mod opt_out;
pub mod passkey;
pub mod password;
pub mod prefix;
pub mod price_history;
pub mod pricing;
pub mod printable;
pub mod pumping;
pub mod quarter;
pub mod quiet_hours;
pub mod readiness;
pub mod reason;
pub mod records;
pub mod refusal;
pub mod rewriting;
pub mod routing;
pub mod schedule;
pub mod security_event;
pub mod sender_name;
pub mod spending;
pub mod status;
pub mod submission;
pub mod support;
pub mod support_hours;
pub mod test_clock;
pub mod test_number;
pub mod timestamp;
pub mod verify;
pub mod webhook;
mod words;
pub mod zone;

pub use account::{Email, Theme};
pub use address_range::AddressRange;
pub use api_key::{ApiKey, KeyKind};
pub use application::{ApplicationStatus, Category, LostAnswer};
pub use application_name::{APPLICATION_NAME_CHARS_MAX, ApplicationName};
pub use bulk::{
    BadFile, BadRow, BulkError, BulkLimits, BulkMode, BulkParser, BulkRow, BulkWriting, TooManyRows,
};
pub use delivery_error::DeliveryError;
pub use desk_act::DeskAct;
pub use event::{EventId, EventStream, EventType};
pub use home_country::HomeCountry;
pub use ids::{
    ApplicationId, BatchId, InboundId, Reference, RequestId, Transid, VerifyId, WebhookId,
};
pub use inbound::{DefaultAlphabet, InboundRecord, PartPosition, ReceivedPart};
pub use keyword::Keyword;
pub use leak::Leak;
pub use limits::{AlarmKind, Guard, LimitField, SendLimits};
pub use mail::{MailKind, MailState};
pub use message::parts::{Concatenation, Part, Segmentation, SubmitAlphabet};
pub use message::{Encoding, MessageText};
pub use message_id_form::MessageIdForm;
pub use money::Money;
pub use month::Month;
pub use number::{Kind, Number, NumberWarning, WarningCounts};
pub use opening_hours::OpeningHours;
pub use opt_out::{CommandWords, OptOutRecord, OptOutSource};
pub use password::Password;
pub use prefix::Prefix;
pub use price_history::{
    PriceChange, PriceHistory, PriceRecord, PriceRequest, PriceRow, PriceStep,
};
pub use pricing::{PageCount, PagesByPrice, Prices, PricesInForce, UnitPrice};
pub use reason::Reason;
pub use refusal::Refusal;
pub use rewriting::Rewriting;
pub use routing::{Route, Routes};
pub use schedule::{Due, Schedule, Validity};
pub use sender_name::{SENDER_REQUESTS_PER_DAY, SenderName, SenderState, SenderStatus};
pub use status::MessageStatus;
pub use submission::Submission;
pub use test_clock::TestClock;
pub use test_number::TestNumber;
pub use timestamp::Timestamp;
pub use zone::Zone;
