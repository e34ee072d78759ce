//! The clock of an application's test key. A program moves it ahead of real time, so that a test
//! doesn't wait for schedules, expiries and retries.

use serde::{Deserialize, Serialize};

use crate::timestamp::{DAY_MS, Timestamp};

/// How many days a clock can be ahead of real time.
pub const DAYS_AHEAD_MAX: i64 = 35;
/// The most moves that a clock remembers. If there are more, the oldest ones count as a single move
/// made long ago.
const MOVES_MAX: usize = 1000;

/// A test clock: its moves since it last showed real time. Each move has its real time, and how far
/// the clock is ahead after the move, both in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TestClock(Vec<(i64, i64)>);

impl TestClock {
    /// Returns how far the clock is ahead of real time, in milliseconds.
    pub fn offset_ms(&self) -> i64 {
        self.0.last().map_or(0, |(_, offset)| *offset)
    }

    pub fn is_moved(&self) -> bool {
        !self.0.is_empty()
    }

    /// Moves the clock ahead. Returns false, and moves nothing, if `ms` isn't positive or if the
    /// clock would be more than [`DAYS_AHEAD_MAX`] ahead.
    pub fn advance(&mut self, now: Timestamp, ms: i64) -> bool {
        let offset = self.offset_ms().saturating_add(ms);
        if ms <= 0 || offset > DAYS_AHEAD_MAX * DAY_MS {
            return false;
        }
        let last = self.0.last().map_or(i64::MIN, |(at, _)| *at);
        self.0.push((now.unix_ms().max(last), offset));
        if self.0.len() > MOVES_MAX {
            self.0.remove(0);
            self.0[0].0 = i64::MIN;
        }
        true
    }

    /// Goes back to real time.
    pub fn reset(&mut self) {
        self.0.clear();
    }

    /// Returns the real time at which the clock will have run for `ms` since the real time
    /// `since`, if it isn't moved again.
    pub fn runs_until(&self, since: Timestamp, ms: i64) -> Timestamp {
        let since = since.unix_ms();
        let before = self.0.iter().take_while(|(at, _)| *at <= since).last();
        let mut offset = before.map_or(0, |(_, offset)| *offset);
        let end = since.saturating_add(offset).saturating_add(ms);
        for &(at, moved) in self.0.iter().skip_while(|(at, _)| *at <= since) {
            if end - offset <= at {
                break;
            }
            if end <= at + moved {
                return Timestamp::from_unix_ms(at);
            }
            offset = moved;
        }
        Timestamp::from_unix_ms(end - offset)
    }

    /// Returns the latest real time from which the clock has run for `ms` until now.
    pub fn has_run_since(&self, now: Timestamp, ms: i64) -> Timestamp {
        let shown = now.unix_ms().saturating_add(self.offset_ms()).saturating_sub(ms);
        let mut until = i64::MAX;
        for &(at, offset) in self.0.iter().rev() {
            if shown - offset >= at {
                return Timestamp::from_unix_ms((shown - offset).min(until));
            }
            // The move at this time made the clock run longer for every earlier time.
            until = at.saturating_sub(1);
        }
        Timestamp::from_unix_ms(shown.min(until))
    }
}
