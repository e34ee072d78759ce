//! The rules of a verification: attempts, repeated sends and its end.

use std::ops::RangeInclusive;

use crate::Timestamp;
use crate::words::words;

/// The number of attempts of all clients together.
pub const ATTEMPTS_MAX: u32 = 5;
/// How long after the last send the code may be sent again: for the first, the second and the third
/// repetition. There is no fourth.
pub const RESENDS_AFTER_MS: [i64; 3] = [30_000, 60_000, 120_000];
/// How long a code can be valid, in seconds.
pub const TTL_S: RangeInclusive<i64> = 60..=3600;
/// How long a code is valid if the caller doesn't say.
pub const DEFAULT_TTL_S: i64 = 600;
/// How long after the last code to a number an application may start another verification of it.
pub const COOL_DOWN_MS: i64 = 30_000;
/// How long verifications are stored.
pub const KEPT_DAYS: i64 = 30;

/// The state of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verification {
    /// When the code was sent last.
    pub sent_at: Timestamp,
    pub expires_at: Timestamp,
    /// How many times the code was sent again.
    pub resends: u32,
    /// The attempts made so far.
    pub attempts: u32,
    pub is_verified: bool,
}

words! {
    @only_written
    /// Why a verification allows no more attempts.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Ended {
        Expired = "expired",
        NoTriesLeft = "no_tries_left",
        AlreadyVerified = "already_verified",
    }
}

words! {
    /// Why an attempt didn't verify the number.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum CheckFailure {
        WrongCode = "wrong_code",
        Expired = "expired",
        NoTriesLeft = "no_tries_left",
        AlreadyVerified = "already_verified",
        Unknown = "unknown",
    }
}

impl From<Ended> for CheckFailure {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Expired => Self::Expired,
            Ended::NoTriesLeft => Self::NoTriesLeft,
            Ended::AlreadyVerified => Self::AlreadyVerified,
        }
    }
}

/// The answer to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckAnswer {
    Verified,
    Wrong { tries_left: u32 },
    Ended(Ended),
}

/// Why a code isn't sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResendRefusal {
    /// It may be sent again at this time.
    TooEarly(Timestamp),
    Ended,
}

impl Verification {
    pub const fn start(now: Timestamp, ttl_s: i64) -> Self {
        Self {
            sent_at: now,
            expires_at: now.plus_ms(ttl_s.saturating_mul(1000)),
            resends: 0,
            attempts: 0,
            is_verified: false,
        }
    }

    pub const fn tries_left(&self) -> u32 {
        ATTEMPTS_MAX.saturating_sub(self.attempts)
    }

    /// Returns why the verification allows no more attempts, or `None` if it allows one.
    pub fn ended(&self, now: Timestamp) -> Option<Ended> {
        if self.is_verified {
            Some(Ended::AlreadyVerified)
        } else if self.tries_left() == 0 {
            Some(Ended::NoTriesLeft)
        } else if now >= self.expires_at {
            Some(Ended::Expired)
        } else {
            None
        }
    }

    /// Decides an attempt. `is_right` is whether the code was typed correctly. Returns the answer
    /// and the state after the attempt.
    pub fn check(self, is_right: bool, now: Timestamp) -> (CheckAnswer, Self) {
        if let Some(ended) = self.ended(now) {
            return (CheckAnswer::Ended(ended), self);
        }
        let next = Self { attempts: self.attempts + 1, is_verified: is_right, ..self };
        let wrong = CheckAnswer::Wrong { tries_left: next.tries_left() };
        (if is_right { CheckAnswer::Verified } else { wrong }, next)
    }

    /// Decides whether the code may be sent again. Returns the state after the repeated send.
    ///
    /// # Errors
    /// `TooEarly`, or `Ended` if the verification has ended or the code was sent again three times.
    pub fn resend(self, now: Timestamp) -> Result<Self, ResendRefusal> {
        let wait = usize::try_from(self.resends).ok().and_then(|n| RESENDS_AFTER_MS.get(n));
        let Some(wait) = wait.filter(|_| self.ended(now).is_none()) else {
            return Err(ResendRefusal::Ended);
        };
        let earliest = self.sent_at.plus_ms(*wait);
        if now < earliest {
            return Err(ResendRefusal::TooEarly(earliest));
        }
        Ok(Self { sent_at: now, resends: self.resends + 1, ..self })
    }
}
