//! Clocks, which provide the current time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use domain::Timestamp;

/// The smallest change of the offset that is stored, in milliseconds. Smaller changes are noise,
/// because querying the other clock takes time too.
const APART_MS: i64 = 20;

/// A clock that is further behind than this, in milliseconds, was set back. Corrections of the
/// network's time are smaller.
const SET_BACK_MS: i64 = 1000;

/// The machine's clock, the database server's clock if several machines must agree on the time, or
/// a clock that a test sets.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    Fixed(Arc<AtomicI64>),
    Machine(Arc<Followed>),
}

#[derive(Debug)]
struct Followed {
    started: Instant,
    /// The followed clock's time at `started`, in Unix milliseconds. [`NOBODY`] if no other clock
    /// is followed.
    offset_ms: AtomicI64,
    /// The machine's time at `started`, by the latest time that its clock has shown.
    own_ms: AtomicI64,
    /// Whether the machine's clock is behind because somebody set it back.
    is_behind: AtomicBool,
}

const NOBODY: i64 = i64::MIN;

impl Clock {
    /// Returns the machine's clock.
    pub fn system() -> Self {
        Self(Source::Machine(Arc::new(Followed {
            started: Instant::now(),
            offset_ms: AtomicI64::new(NOBODY),
            own_ms: AtomicI64::new(NOBODY),
            is_behind: AtomicBool::new(false),
        })))
    }

    /// Returns a clock that shows `unix_ms` until a test changes the value.
    pub fn fixed(unix_ms: Arc<AtomicI64>) -> Self {
        Self(Source::Fixed(unix_ms))
    }

    /// Follows another clock, which shows `unix_ms` now. Returns how many milliseconds the
    /// machine's own clock is ahead of it. A clock that a test sets ignores the call and returns 0.
    pub(crate) fn follow(&self, unix_ms: i64) -> i64 {
        let Source::Machine(followed) = &self.0 else {
            return 0;
        };
        let offset = unix_ms.saturating_sub(elapsed_ms(followed.started));
        let before = followed.offset_ms.load(Ordering::Relaxed);
        if before == NOBODY || (before - offset).abs() > APART_MS {
            followed.offset_ms.store(offset, Ordering::Relaxed);
        }
        machine_ms().saturating_sub(unix_ms)
    }

    pub fn now(&self) -> Timestamp {
        let ms = match &self.0 {
            Source::Fixed(fixed) => fixed.load(Ordering::Relaxed),
            Source::Machine(followed) => match followed.offset_ms.load(Ordering::Relaxed) {
                NOBODY => followed.forwards(machine_ms(), elapsed_ms(followed.started)),
                // The time since `started` comes from the monotonic clock, which nobody can set.
                offset => offset.saturating_add(elapsed_ms(followed.started)),
            },
        };
        Timestamp::from_unix_ms(ms)
    }
}

impl Followed {
    /// Returns the machine's time, which never goes back: if somebody sets the clock back, the time
    /// goes on with the monotonic clock. Otherwise, everything that is due soon would wait.
    fn forwards(&self, machine_ms: i64, elapsed_ms: i64) -> i64 {
        let own = machine_ms.saturating_sub(elapsed_ms);
        let latest = self.own_ms.fetch_max(own, Ordering::Relaxed).max(own);
        let is_behind = latest.saturating_sub(own) > SET_BACK_MS;
        if self.is_behind.load(Ordering::Relaxed) != is_behind
            && self.is_behind.swap(is_behind, Ordering::Relaxed) != is_behind
            && is_behind
        {
            tracing::warn!(
                behind_ms = latest - own,
                "this machine's clock was set back; this process goes on with the time that it \
                 had. Restart it if that time was wrong"
            );
        }
        latest.saturating_add(elapsed_ms)
    }
}

/// Reads the machine's clock, in Unix milliseconds. A time before 1970 reads as 0.
fn machine_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

fn elapsed_ms(since: Instant) -> i64 {
    i64::try_from(since.elapsed().as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_goes_on_when_the_clock_is_set_back() {
        const HOUR_MS: i64 = 3_600_000;
        let Source::Machine(clock) = Clock::system().0 else { unreachable!() };
        let start = 10 * HOUR_MS;
        assert_eq!(clock.forwards(start, 0), start);
        assert_eq!(clock.forwards(start + 100, 100), start + 100);
        assert_eq!(clock.forwards(start - HOUR_MS, 200), start + 200);
        assert_eq!(clock.forwards(start - HOUR_MS + 100, 300), start + 300);
        // It is set forward again, and further.
        assert_eq!(clock.forwards(start + 400, 400), start + 400);
        assert_eq!(clock.forwards(start + HOUR_MS, 500), start + HOUR_MS);
        assert_eq!(clock.forwards(start + HOUR_MS, 600), start + HOUR_MS + 100);
    }
}
