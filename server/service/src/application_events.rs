//! The events of applications themselves, and their data.

use domain::application::StatusAction;
use domain::{
    AlarmKind, ApplicationId, ApplicationStatus, EventStream, EventType, KeyKind, Money,
    OptOutRecord, SenderStatus, Timestamp,
};
use serde_json::json;

use store::Tx;

/// Why an application has an event.
pub(crate) enum Cause<'a> {
    Status(StatusAction, ApplicationStatus, Option<&'a str>),
    /// A decision about a sender name.
    Sender(SenderStatus, &'a str, Option<&'a str>),
    Deposit {
        amount: Money,
        balance: Money,
        currency: &'a str,
    },
    BalanceLow {
        balance: Money,
        threshold: Money,
        currency: &'a str,
    },
    KeyReplaced(KeyKind),
    LimitAlarm {
        kind: AlarmKind,
        count: i64,
        /// A masked number.
        example: Option<&'a str>,
        /// Describes what triggered the alarm.
        detail: &'a str,
        at: Timestamp,
    },
    OptOut {
        is_added: bool,
        /// The opt-out, with the source of this change.
        record: OptOutRecord,
    },
}

impl Cause<'_> {
    /// Adds the event to the transaction that causes it, for both keys of the application.
    pub(crate) fn put(&self, tx: &mut Tx<'_>, application_id: ApplicationId, now: Timestamp) {
        let streams = [false, true].map(|test| EventStream { application_id, test });
        tx.cause(&streams, self.kind(), &self.data(), now);
    }

    /// Adds the event to the transaction that causes it, for one of the keys.
    pub(crate) fn put_in(&self, tx: &mut Tx<'_>, stream: EventStream, now: Timestamp) {
        tx.cause(&[stream], self.kind(), &self.data(), now);
    }

    const fn kind(&self) -> EventType {
        match self {
            Self::Status(StatusAction::Approve, ..) => EventType::Activated,
            Self::Status(StatusAction::Suspend, ..) => EventType::Suspended,
            Self::Status(StatusAction::Reinstate, ..) => EventType::Reinstated,
            Self::Sender(SenderStatus::Accepted, ..) => EventType::SenderAccepted,
            Self::Sender(..) => EventType::SenderRejected,
            Self::Deposit { .. } => EventType::DepositReceived,
            Self::BalanceLow { .. } => EventType::BalanceLow,
            Self::KeyReplaced(_) => EventType::KeyReplaced,
            Self::LimitAlarm { .. } => EventType::LimitAlarm,
            Self::OptOut { is_added: true, .. } => EventType::OptOutAdded,
            Self::OptOut { .. } => EventType::OptOutRemoved,
        }
    }

    fn data(&self) -> String {
        let money = |fields: [(&str, Money); 2], currency: &str| {
            // Amounts are written as exact decimals, which a float may not be.
            let [(first, one), (second, two)] = fields;
            let currency = json!(currency);
            format!(r#"{{"{first}":{one},"{second}":{two},"currency":{currency}}}"#)
        };
        match self {
            Self::Status(_, status, reason) => {
                json!({"status": status.as_str(), "reason": reason}).to_string()
            }
            Self::Sender(_, name, reason) => json!({"sender": name, "reason": reason}).to_string(),
            Self::Deposit { amount, balance, currency } => {
                money([("amount", *amount), ("balance", *balance)], currency)
            }
            Self::BalanceLow { balance, threshold, currency } => {
                money([("balance", *balance), ("threshold", *threshold)], currency)
            }
            Self::KeyReplaced(kind) => json!({"kind": kind.as_str()}).to_string(),
            Self::LimitAlarm { kind, count, example, detail, at } => json!({
                "limit": kind.as_str(),
                "count": count,
                "example": example,
                "detail": detail,
                "at": at.to_string(),
            })
            .to_string(),
            Self::OptOut { record, .. } => json!({
                "number": record.number,
                "source": record.source.as_str(),
                "created_at": record.created_at.to_string(),
            })
            .to_string(),
        }
    }
}
