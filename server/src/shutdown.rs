//! Tokens that are cancelled at shutdown.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::systemd::{self, Notice};

/// Returns a token that is cancelled `delay` after another one. In that time, a proxy notices that
/// this process isn't ready.
pub fn after(requested: &CancellationToken, delay: Duration) -> CancellationToken {
    let (requested, token) = (requested.clone(), CancellationToken::new());
    let stop = token.clone();
    tokio::spawn(async move {
        requested.cancelled().await;
        tokio::time::sleep(delay).await;
        stop.cancel();
    });
    token
}

/// Returns a token that is cancelled at the first SIGTERM or SIGINT. A second signal ends the
/// process at once.
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
                tracing::warn!("received a second signal to stop; exiting at once");
                std::process::exit(1);
            }
            tracing::info!("received a signal to stop; finishing the pending requests and submits");
            systemd::notify(Notice::Stopping);
            stop.cancel();
        }
    });
    ignore_others()?;
    Ok(token)
}

/// Returns the signal that asks to reload carriers and routes. From now on, it doesn't end the
/// process.
pub fn on_hangup() -> std::io::Result<Signal> {
    signal(SignalKind::hangup())
}

/// Keeps the signals that end a process by default, and that operators send for other purposes,
/// from ending this one while carriers answer submits.
fn ignore_others() -> std::io::Result<()> {
    for kind in [SignalKind::user_defined1(), SignalKind::user_defined2()] {
        let mut received = signal(kind)?;
        tokio::spawn(async move {
            while received.recv().await.is_some() {
                tracing::warn!(
                    signal = kind.as_raw_value(),
                    "ignored a signal; SIGHUP reloads carriers and routes"
                );
            }
        });
    }
    Ok(())
}
