//! A disk that can be made to fail: a shim under the real binary, built by the C compiler that the
//! build needs anyway.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The shim of a server.
pub struct Disk {
    shim: PathBuf,
    /// Where the shim reads how the disk fails.
    order: PathBuf,
}

impl Disk {
    /// Builds the shim into a folder.
    pub fn new(folder: &Path) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/faults/disk.c");
        let shim = folder.join("disk.so");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&shim, &source])
            .status()
            .unwrap();
        assert!(built.success());
        let order = folder.join("disk-fault");
        Self { shim, order }
    }

    /// What puts it under a server.
    pub fn environment(&self) -> [(&str, &str); 2] {
        [
            ("LD_PRELOAD", self.shim.to_str().unwrap()),
            ("DISK_FAULT", self.order.to_str().unwrap()),
        ]
    }

    /// From now on it fails to `write` or `sync` files whose path ends so; or, with `kill` and a
    /// word, kills the process at the end of the first sync after the word was written. The order
    /// is written beside its file and moved, so that the shim never reads half of it.
    pub fn fail(&self, what: &str, ending: &str) {
        let draft = self.order.with_extension("draft");
        std::fs::write(&draft, format!("{what}\n{ending}\n")).unwrap();
        std::fs::rename(draft, &self.order).unwrap();
    }

    pub fn heal(&self) {
        std::fs::remove_file(&self.order).unwrap();
    }
}
