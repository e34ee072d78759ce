//! Bounds on what must not be tried without end.

use domain::Timestamp;

use crate::error::{Error, Refusal, Result};
use crate::store::query::Connection;
use crate::store::throttles;

/// Counts an attempt and refuses it when there were too many in the window.
pub(crate) async fn attempt(
    conn: &mut dyn Connection,
    bucket: &str,
    max: i64,
    window_ms: i64,
    now: Timestamp,
) -> Result<()> {
    let (hits, started) = throttles::hit(conn, bucket, now, window_ms).await?;
    if hits <= max {
        return Ok(());
    }
    let retry_after_s = (started.plus_ms(window_ms).ms_since(now) / 1000).max(1);
    Err(Error::Refused(Refusal::Throttled { retry_after_s }))
}
