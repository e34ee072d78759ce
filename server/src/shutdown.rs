//! When to stop.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A token that is cancelled this long after another one: whoever sends requests here is to notice
/// first.
pub fn after(asked: &CancellationToken, delay: Duration) -> CancellationToken {
    let (asked, token) = (asked.clone(), CancellationToken::new());
    let stop = token.clone();
    tokio::spawn(async move {
        asked.cancelled().await;
        tokio::time::sleep(delay).await;
        stop.cancel();
    });
    token
}

/// A token that is cancelled at the first SIGTERM or SIGINT. A second one ends the process at once,
/// for whoever can't wait.
pub fn on_signal() -> std::io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let token = CancellationToken::new();
    let stop = token.clone();
    tokio::spawn(async move {
        for _ in 0..2 {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if stop.is_cancelled() {
                tracing::warn!("asked to stop again: ending at once");
                std::process::exit(1);
            }
            tracing::info!("asked to stop: finishing what has begun");
            stop.cancel();
        }
    });
    Ok(token)
}
