//! Where the time comes from.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use domain::Timestamp;

/// The machine's clock, or one that a test sets.
#[derive(Clone, Debug, Default)]
pub struct Clock(Option<Arc<AtomicI64>>);

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self(None)
    }

    /// A clock that shows these unix milliseconds until they are changed.
    #[must_use]
    pub fn fixed(unix_ms: Arc<AtomicI64>) -> Self {
        Self(Some(unix_ms))
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        let ms = match &self.0 {
            Some(fixed) => fixed.load(Ordering::Relaxed),
            // A clock before 1970 reads as 1970.
            None => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| {
                    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
                }),
        };
        Timestamp::from_unix_ms(ms)
    }
}
