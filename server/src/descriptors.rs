//! The limit of open files. Each client connection uses one file.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The number of open files that are reserved for the database, uploads and carriers.
const OTHERS: u64 = 512;

/// Raises the process's limit of open files to the system's maximum. Returns the number of
/// connections that clients can have within that limit, but at most `wanted`.
pub fn allow(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    let connections = fitting(files, wanted);
    if connections < wanted {
        let files = files.unwrap_or_default();
        tracing::warn!(
            files,
            connections,
            "the system allows too few open files for connections_max"
        );
    }
    connections
}

/// Returns how many connections fit into a limit of open files. `None` means no limit.
fn fitting(files: Option<u64>, wanted: usize) -> usize {
    let room = files.map(|files| usize::try_from(files.saturating_sub(OTHERS)).unwrap_or(wanted));
    room.map_or(wanted, |room| room.clamp(1, wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_to_others() {
        for (files, wanted, fit) in [
            (None, 10_000, 10_000),
            (Some(65_536), 10_000, 10_000),
            (Some(10_512), 10_000, 10_000),
            (Some(10_511), 10_000, 9_999),
            (Some(1024), 10_000, 512),
            (Some(20), 10_000, 1),
            (Some(u64::MAX), 1, 1),
        ] {
            assert_eq!(fitting(files, wanted), fit, "{files:?}");
        }
    }
}
