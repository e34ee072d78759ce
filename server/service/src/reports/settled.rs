//! The cache of figures of days whose messages are all final. Reports read the same days again and
//! again, and a day has up to 1,700 rows of figures.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::ApplicationId;
use domain::quarter::Figures;

/// The maximum number of days in the cache, for all applications together. They take about 12 MB.
/// The cache is cleared when it is full.
const DAYS_MAX: usize = 50_000;

/// The application, the kind of key and the time zone that cached days belong to.
#[derive(Clone, Copy)]
pub(super) struct Days {
    pub application_id: ApplicationId,
    pub test: bool,
    /// How many quarter hours the zone is ahead of UTC on these days.
    pub ahead: i64,
}

impl Days {
    const fn key(self, day: i64) -> Key {
        (self.application_id.0, self.test, self.ahead, day)
    }
}

/// The application's ID, whether the messages are test messages, the zone's offset, and the day.
type Key = (i64, bool, i64, i64);

#[derive(Default)]
pub(crate) struct SettledDays(Mutex<BTreeMap<Key, Figures>>);

impl SettledDays {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Figures>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the cached figures of consecutive days. Starts with `first` and ends before the
    /// first day that isn't cached.
    pub(super) fn known(&self, of: Days, first: i64, below: i64) -> Vec<Figures> {
        let kept = self.lock();
        let days = kept.range(of.key(first)..of.key(below.max(first)));
        let days = days.zip(first..).take_while(|((key, _), day)| key.3 == *day);
        days.map(|((_, figures), _)| *figures).collect()
    }

    /// Caches the figures of a settled day if all its messages are final.
    pub(super) fn keep(&self, of: Days, day: i64, figures: &Figures) {
        if figures.under_way() != 0 {
            return;
        }
        let mut kept = self.lock();
        if kept.len() >= DAYS_MAX {
            kept.clear();
        }
        kept.insert(of.key(day), *figures);
    }
}
