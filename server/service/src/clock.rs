//! Clocks, which provide the current time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use domain::Timestamp;

/// The smallest change of the offset that is stored, in milliseconds. Smaller changes are noise,
/// because querying the other clock takes time too.
const APART_MS: i64 = 20;

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
}

const NOBODY: i64 = i64::MIN;

impl Clock {
    /// Returns the machine's clock.
    pub fn system() -> Self {
        Self(Source::Machine(Arc::new(Followed {
            started: Instant::now(),
            offset_ms: AtomicI64::new(NOBODY),
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
                NOBODY => machine_ms(),
                // The time since `started` comes from the monotonic clock, which nobody can set.
                offset => offset.saturating_add(elapsed_ms(followed.started)),
            },
        };
        Timestamp::from_unix_ms(ms)
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
