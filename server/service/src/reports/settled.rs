//! Figures of days whose messages are final, which a process keeps: reports ask for the same days
//! again and again, and a day has up to 1,700 rows of figures.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::ApplicationId;
use domain::quarter::Figures;

/// How many days are kept, of all applications together: some 12 MB. All are forgotten when there
/// are more, and read again as they are asked for.
const DAYS_MAX: usize = 50_000;

/// Days of a time zone, and whose messages are counted.
#[derive(Clone, Copy)]
pub(super) struct Days {
    pub application_id: ApplicationId,
    pub test: bool,
    /// By how many quarter hours the zone is ahead of UTC on these days.
    pub ahead: i64,
}

impl Days {
    const fn key(self, day: i64) -> Key {
        (self.application_id.0, self.test, self.ahead, day)
    }
}

/// The application, whether it is its test key, the zone's offset, and the day.
type Key = (i64, bool, i64, i64);

#[derive(Default)]
pub(crate) struct SettledDays(Mutex<BTreeMap<Key, Figures>>);

impl SettledDays {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Figures>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The days that are kept, from the first one to the one before the first that isn't.
    pub(super) fn known(&self, of: Days, first: i64, below: i64) -> Vec<Figures> {
        let kept = self.lock();
        let days = kept.range(of.key(first)..of.key(below.max(first)));
        let days = days
            .zip(first..)
            .take_while(|((key, _), day)| key.3 == *day);
        days.map(|((_, figures), _)| *figures).collect()
    }

    /// Keeps the figures of a day that is long over, if each of its messages is final.
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
