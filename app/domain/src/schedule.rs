//! Scheduled messages: when a message is due, and until when it may be submitted.

use crate::timestamp::{DAY_MS, Timestamp};

/// How long a message may take to become final, in milliseconds. After that, the message expires.
/// The time counts from when the message is scheduled for, or else from its acceptance.
pub const LIFETIME_MS: i64 = 48 * 60 * MINUTE_MS;
/// How many days ahead a message can be scheduled.
pub const DAYS_AHEAD_MAX: i64 = 35;
/// How many minutes a time may be in the past. The message is then due at once.
pub const MINUTES_LATE_MAX: i64 = 5;
/// The longest validity.
pub const VALIDITY_MINUTES_MAX: i64 = LIFETIME_MS / MINUTE_MS;

const MINUTE_MS: i64 = 60_000;

/// How long a message may wait until it is submitted to a carrier, in minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity(i64);

impl Validity {
    /// Parses plain digits from 1 to [`VALIDITY_MINUTES_MAX`].
    pub fn parse(text: &str) -> Option<Self> {
        let plain = text.bytes().all(|byte| byte.is_ascii_digit());
        let minutes = text.parse().ok().filter(|_| plain)?;
        (1..=VALIDITY_MINUTES_MAX).contains(&minutes).then_some(Self(minutes))
    }

    pub const fn minutes(self) -> i64 {
        self.0
    }
}

/// The schedule that a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    pub send_at: Option<Timestamp>,
    pub validity: Option<Validity>,
}

/// When an accepted message is due, and when it expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// `None` if it is due at once.
    pub send_at: Option<Timestamp>,
    /// The time from which the message may no longer be submitted. `None` if that is 48 hours after
    /// its acceptance.
    pub expires_at: Option<Timestamp>,
}

impl Schedule {
    /// Parses a time in RFC 3339. Leap seconds are refused, because none is announced.
    pub fn parse_time(text: &str) -> Option<Timestamp> {
        if text.get(17..19) == Some("60") { None } else { Timestamp::parse(text) }
    }

    /// Returns when a message that is accepted `now` is due. `quiet_end` returns the end of the
    /// quiet hours that a time is in. A message that would be due within quiet hours is due at
    /// their end, and its validity begins then. Returns `None` if the time that the request asks
    /// for is too far away.
    pub fn due(
        self,
        now: Timestamp,
        quiet_end: impl Fn(Timestamp) -> Option<Timestamp>,
    ) -> Option<Due> {
        let ahead = self.send_at.map_or(0, |at| at.ms_since(now));
        if !(-MINUTES_LATE_MAX * MINUTE_MS..=DAYS_AHEAD_MAX * DAY_MS).contains(&ahead) {
            return None;
        }
        let asked = self.send_at.filter(|at| *at > now);
        let send_at = quiet_end(asked.unwrap_or(now)).or(asked);
        let validity = self.validity.filter(|validity| validity.0 < VALIDITY_MINUTES_MAX);
        let lasts_ms = validity.map_or(LIFETIME_MS, |validity| validity.0 * MINUTE_MS);
        let is_own = send_at.is_some() || validity.is_some();
        let expires_at = is_own.then(|| send_at.unwrap_or(now).plus_ms(lasts_ms));
        Some(Due { send_at, expires_at })
    }
}

/// Returns true if a message that wasn't submitted expires by its validity. Otherwise it expires
/// after 48 hours, counted from `base`.
pub fn is_by_validity(expires_at: Option<Timestamp>, base: Timestamp) -> bool {
    expires_at.is_some_and(|at| at < base.plus_ms(LIFETIME_MS))
}
