//! The rules of Heliograph, pure: no IO, no clock, no randomness of its own.
//!
//! Everything here compiles for the server and for the browser, so that a form is judged by the
//! same code while one types and when it arrives.

pub mod account;
pub mod admission;
pub mod api_key;
pub mod application;
pub mod bulk;
pub mod ids;
pub mod message;
pub mod money;
pub mod number;
pub mod pricing;
pub mod reason;
pub mod records;
pub mod routing;
pub mod sender_name;
pub mod status;
pub mod timestamp;

pub use account::{Email, Password};
pub use api_key::{ApiKey, KeyKind};
pub use application::{ApplicationStatus, Category, LostAnswer};
pub use bulk::{
    BadFile, BadRow, BulkError, BulkLimits, BulkMode, BulkParser, BulkRow, BulkWriting, TooManyRows,
};
pub use ids::{BatchId, Reference, RequestId, Transid};
pub use message::parts::{Concatenation, Part, Segmentation};
pub use message::{Encoding, MessageText};
pub use money::Money;
pub use number::{Kind, Number};
pub use pricing::Prices;
pub use reason::Reason;
pub use routing::{Route, Routes};
pub use sender_name::{SenderName, SenderState, SenderStatus};
pub use status::MessageStatus;
pub use timestamp::Timestamp;
