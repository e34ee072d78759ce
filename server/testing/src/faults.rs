//! Faults under the real binary: shims of the system's calls, built by the C compiler that the
//! build needs anyway. Each reads from a file of its own what it has to do.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The disk of a server.
pub struct Disk(Shim);

impl Disk {
    /// Builds the shim into a folder.
    pub fn new(folder: &Path) -> Self {
        Self(Shim::build(folder, "disk"))
    }

    /// What puts it under a server.
    pub fn environment(&self) -> [(&str, &str); 2] {
        self.0.environment("DISK_FAULT")
    }

    /// From now on it fails to `write` or `sync` files whose path ends so; or, with `kill` and a
    /// word, kills the process at the end of the first sync after the word was written.
    pub fn fail(&self, what: &str, ending: &str) {
        self.0.order(&format!("{what}\n{ending}\n"));
    }

    pub fn heal(&self) {
        std::fs::remove_file(&self.0.order).unwrap();
    }
}

/// The clock of a server.
pub struct Clock(Shim);

impl Clock {
    /// Builds the shim into a folder.
    pub fn new(folder: &Path) -> Self {
        Self(Shim::build(folder, "clock"))
    }

    /// What puts it under a server.
    pub fn environment(&self) -> [(&str, &str); 2] {
        self.0.environment("CLOCK_FAULT")
    }

    /// The thread of this name panics when it asks for the time of day: once it is refused, which
    /// Rust's standard library takes for impossible.
    pub fn make_panic(&self, thread: &str) {
        self.0.order(&format!("{thread}\n"));
    }
}

struct Shim {
    library: PathBuf,
    /// Where the shim reads what it has to do.
    order: PathBuf,
}

impl Shim {
    fn build(folder: &Path, name: &str) -> Self {
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
        [
            ("LD_PRELOAD", self.library.to_str().unwrap()),
            (order, self.order.to_str().unwrap()),
        ]
    }

    /// The order is written beside its file and moved, so that the shim never reads half of it.
    fn order(&self, order: &str) {
        let draft = self.order.with_extension("draft");
        std::fs::write(&draft, order).unwrap();
        std::fs::rename(draft, &self.order).unwrap();
    }
}
