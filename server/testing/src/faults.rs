//! Faults for the real binary: shims of system calls, built with the C compiler that the build
//! needs anyway. Each shim reads its instructions from a file.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A disk that fails on demand.
pub struct Disk(Shim);

impl Disk {
    /// Builds the shim in a folder.
    pub fn new(folder: &Path) -> Self {
        Self(Shim::build(folder, "disk"))
    }

    /// The environment variables that load the shim into a server.
    pub fn environment(&self) -> [(&str, &str); 2] {
        self.0.environment("DISK_FAULT")
    }

    /// Makes the disk fail. With `write` or `sync`, that operation fails for files whose path contains
    /// `part`, or ends with it if a `$` follows. With `kill`, the process is killed at the end of
    /// the first sync after it wrote the text in `part`.
    pub fn fail(&self, what: &str, part: &str) {
        self.0.order(&format!("{what}\n{part}\n"));
    }

    pub fn heal(&self) {
        std::fs::remove_file(&self.0.order).unwrap();
    }
}

/// A clock that fails on demand.
pub struct Clock(Shim);

impl Clock {
    /// Builds the shim in a folder.
    pub fn new(folder: &Path) -> Self {
        Self(Shim::build(folder, "clock"))
    }

    /// The environment variables that load the shim into a server.
    pub fn environment(&self) -> [(&str, &str); 2] {
        self.0.environment("CLOCK_FAULT")
    }

    /// Makes the thread of this name panic when it next reads the time of day. The call fails once,
    /// which Rust's standard library considers impossible.
    pub fn make_panic(&self, thread: &str) {
        self.0.order(&format!("panic {thread}\n"));
    }

    /// Returns a clock for another process, with instructions of its own.
    pub fn another(&self, name: &str) -> Self {
        let order = self.0.order.with_file_name(name).with_extension("fault");
        Self(Shim { library: self.0.library.clone(), order })
    }

    /// Sets the clock ahead by so many seconds, or behind if the number is negative.
    pub fn shift(&self, seconds: i64) {
        self.0.order(&format!("shift {seconds}\n"));
    }

    /// Sets the clock right.
    pub fn heal(&self) {
        std::fs::remove_file(&self.0.order).unwrap();
    }
}

pub(crate) struct Shim {
    pub(crate) library: PathBuf,
    /// The file from which the shim reads its instructions.
    order: PathBuf,
}

impl Shim {
    pub(crate) fn build(folder: &Path, name: &str) -> Self {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/faults");
        let library = folder.join(name).with_extension("so");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&library, &sources.join(name).with_extension("c")])
            .status()
            .unwrap();
        assert!(built.success());
        let order = folder.join(name).with_extension("fault");
        Self { library, order }
    }

    fn environment(&self, order: &'static str) -> [(&str, &str); 2] {
        [("LD_PRELOAD", self.library.to_str().unwrap()), (order, self.order.to_str().unwrap())]
    }

    /// Writes another file first and renames it, so that the shim never reads a partial file.
    fn order(&self, order: &str) {
        let draft = self.order.with_extension("draft");
        std::fs::write(&draft, order).unwrap();
        std::fs::rename(draft, &self.order).unwrap();
    }
}
