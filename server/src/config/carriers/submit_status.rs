//! `[carrier.submit_status]`: what a refused submit means for the message.

use std::collections::BTreeMap;

use ::smpp::status_code as code;

use super::fields::Fields;

/// The action for a message whose submit the carrier refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitAction {
    /// The message is submitted again, after pauses that grow.
    Retry,
    /// The message takes another route. Without one, it is rejected.
    NextRoute,
    /// The message is rejected.
    Reject,
    /// The message waits, because the carrier refuses the account, not this message. The connection
    /// pauses, and then tries one message at a time until the carrier accepts one.
    Hold,
    /// The message waits. The connection pauses for a short time.
    Throttle,
}

const ACTIONS: [(&str, SubmitAction); 5] = [
    ("retry", SubmitAction::Retry),
    ("next_route", SubmitAction::NextRoute),
    ("reject", SubmitAction::Reject),
    ("hold", SubmitAction::Hold),
    ("throttle", SubmitAction::Throttle),
];

impl SubmitAction {
    /// Returns the action's name in the settings. A test compares the guide with it.
    #[cfg(test)]
    pub fn as_str(self) -> &'static str {
        ACTIONS.iter().find(|(_, action)| *action == self).map_or("", |(word, _)| word)
    }

    /// Returns the action for a status that the settings don't mention.
    pub const fn by_default(status: u32) -> Self {
        match status {
            code::THROTTLED | code::QUEUE_FULL => Self::Throttle,
            // Many carriers return the last two for temporary faults that have nothing to do with
            // the message.
            code::TEMPORARY_ERROR
            | code::SYSTEM_ERROR
            | code::INCORRECT_BIND_STATUS
            | code::DELIVERY_FAILED
            | code::SUBMIT_FAILED
            | code::UNKNOWN_ERROR => Self::Retry,
            // These refuse the bind or the account: every message would get the same answer. From
            // 0x400 on, the codes are the carriers' own, mostly for accounts and credit.
            code::BIND_FAILED
            | code::INVALID_PASSWORD
            | code::INVALID_SYSTEM_ID
            | code::INVALID_SERVICE_TYPE
            | code::INVALID_SYSTEM_TYPE
            | 0x400..=0x4FF => Self::Hold,
            _ => Self::NextRoute,
        }
    }
}

/// The actions that a carrier's settings change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubmitStatus(BTreeMap<u32, SubmitAction>);

impl SubmitStatus {
    pub fn action(&self, status: u32) -> SubmitAction {
        self.0.get(&status).copied().unwrap_or(SubmitAction::by_default(status))
    }

    /// Whether the settings mention the status.
    pub fn is_set(&self, status: u32) -> bool {
        self.0.contains_key(&status)
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Self {
        let mut changed = BTreeMap::new();
        for (key, word) in fields.map("submit_status") {
            let status = key.strip_prefix("0x").and_then(|hex| u32::from_str_radix(hex, 16).ok());
            let action = ACTIONS.iter().find(|(known, _)| *known == word);
            match (status, action) {
                (Some(1..), Some((_, action))) if key.len() <= 10 => {
                    let status = status.unwrap_or_default();
                    if changed.insert(status, *action).is_some() {
                        fields.problem(&format!("submit_status has {key} twice"));
                    }
                }
                (_, None) => {
                    let words = ACTIONS.map(|(word, _)| word).join(", ");
                    fields.problem(&format!("submit_status.{key} must be one of {words}"));
                }
                _ => fields.problem(&format!(
                    "submit_status.{key} must be a command_status like 0x0000000f"
                )),
            }
        }
        Self(changed)
    }
}
