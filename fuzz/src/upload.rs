//! Uploads, as the API reads them.

use heliograph::fuzzing::{self, Uploaded};
use tokio::runtime::{Builder, Runtime};

thread_local! {
    static RUNTIME: Runtime = runtime();
}

#[expect(clippy::expect_used, reason = "no target can run without it")]
fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a runtime")
}

/// Runs a future.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.with(|runtime| runtime.block_on(future))
}

/// Reads an upload whose body arrives in pieces.
pub fn upload(content_type: &[u8], query: Option<&str>, pieces: &[&[u8]]) -> Uploaded {
    let pieces = pieces.iter().map(|piece| piece.to_vec()).collect();
    run(fuzzing::upload(content_type, query, pieces))
}
