//! Power cuts for the real binary: of its data folder, only synced bytes and names are certain to
//! be left. A kill is less, because the kernel still has everything that the process wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::faults::Shim;

/// A disk writes its sectors whole.
const SECTOR_BYTES: usize = 512;
/// SQLite rebuilds this file, and its contents aren't watched.
const INDEX_OF_LOG: &str = "-shm";

/// The power of a disk with the data folder of a server.
pub struct Power {
    shim: Shim,
    data: PathBuf,
    /// The record of what is synced. `faults/power.c` describes it.
    disk: PathBuf,
    /// While these are open, no new file gets their inode numbers.
    held: Vec<File>,
}

/// The names in a folder, with their inode numbers.
type Names = BTreeMap<String, u64>;

impl Power {
    /// Builds the shim. `folder` has the data folder, and no process uses it.
    pub fn new(folder: &Path) -> Self {
        // The shim compares paths as the kernel reports them.
        let folder = folder.canonicalize().unwrap();
        let (data, disk) = (folder.join("data"), folder.join("disk"));
        let mut power = Self { shim: Shim::build(&folder, "power"), data, disk, held: Vec::new() };
        power.sync_all();
        power
    }

    /// The environment variables that load the shim into a server. Syncs of files whose path ends
    /// with `ignored` do nothing. If it is empty, all syncs work.
    pub fn environment<'a>(&'a self, ignored: &'a str) -> [(&'a str, &'a str); 4] {
        [
            ("LD_PRELOAD", self.shim.library.to_str().unwrap()),
            ("POWER_DATA", self.data.to_str().unwrap()),
            ("POWER_DISK", self.disk.to_str().unwrap()),
            ("POWER_IGNORED", ignored),
        ]
    }

    /// Treats everything that the data folder has now as synced.
    fn sync_all(&mut self) {
        if self.disk.exists() {
            fs::remove_dir_all(&self.disk).unwrap();
        }
        fs::create_dir(&self.disk).unwrap();
        self.held.clear();
        self.sync_folder(&self.data.clone());
    }

    fn sync_folder(&mut self, folder: &Path) {
        let names = names_in(folder);
        let lines: Vec<String> =
            names.iter().map(|(name, ino)| format!("{ino} {name}\n")).collect();
        fs::write(self.record(inode(folder), "names"), lines.concat()).unwrap();
        for (name, inode) in names {
            let path = folder.join(name);
            if path.is_dir() {
                self.sync_folder(&path);
            } else {
                fs::copy(&path, self.record(inode, "bytes")).unwrap();
                self.held.push(File::open(&path).unwrap());
            }
        }
    }

    /// Changes the data folder to what a power cut leaves. The process must be killed already. Of
    /// the sectors and names that weren't synced, the folder keeps those for which `keeps` returns
    /// true.
    pub fn cut(&mut self, mut keeps: impl FnMut() -> bool) {
        self.cut_folder(&self.data, &mut keeps);
        self.sync_all();
    }

    fn cut_folder(&self, folder: &Path, keeps: &mut dyn FnMut() -> bool) {
        let (synced, now) = (self.synced_names(folder), names_in(folder));
        let all: BTreeSet<&String> = synced.keys().chain(now.keys()).collect();
        let mut left = BTreeMap::new();
        for name in all {
            let path = folder.join(name);
            if path.is_dir() {
                if synced.contains_key(name) || keeps() {
                    self.cut_folder(&path, keeps);
                } else {
                    fs::remove_dir_all(&path).unwrap();
                }
                continue;
            }
            let (before, after) = (synced.get(name), now.get(name));
            let inode = if before != after && keeps() { after } else { before };
            if let Some(inode) = inode.filter(|_| !name.ends_with(INDEX_OF_LOG)) {
                let written = now.iter().find(|(_, number)| *number == inode);
                let written = written.map(|(name, _)| fs::read(folder.join(name)).unwrap());
                left.insert(path, (*inode, self.left_of(*inode, written, keeps)));
            }
        }
        // The other files keep their inode numbers, by which the server recognizes its database.
        for (path, inode) in now.iter().map(|(name, inode)| (folder.join(name), inode)) {
            if path.is_file() && left.get(&path).is_none_or(|(kept, _)| kept != inode) {
                fs::remove_file(path).unwrap();
            }
        }
        for (path, (_, bytes)) in left {
            fs::write(path, bytes).unwrap();
        }
    }

    /// Returns what is left of a file. `written` are its bytes without the cut, unless its name is
    /// gone.
    fn left_of(
        &self,
        inode: u64,
        written: Option<Vec<u8>>,
        keeps: &mut dyn FnMut() -> bool,
    ) -> Vec<u8> {
        let mut synced = fs::read(self.record(inode, "bytes")).unwrap_or_default();
        let Some(mut written) = written else {
            return synced;
        };
        let length = if keeps() { written.len() } else { synced.len() };
        synced.resize(length, 0);
        written.resize(length, 0);
        let sectors = synced.chunks_mut(SECTOR_BYTES).zip(written.chunks(SECTOR_BYTES));
        for (synced, written) in sectors {
            if synced != written && keeps() {
                synced.copy_from_slice(written);
            }
        }
        synced
    }

    fn synced_names(&self, folder: &Path) -> Names {
        // A new folder may not be synced at all.
        let names = fs::read_to_string(self.record(inode(folder), "names")).unwrap_or_default();
        let names = names.lines().map(|line| line.split_once(' ').unwrap());
        names.map(|(inode, name)| (name.to_owned(), inode.parse().unwrap())).collect()
    }

    fn record(&self, inode: u64, kind: &str) -> PathBuf {
        self.disk.join(format!("{inode}.{kind}"))
    }
}

fn names_in(folder: &Path) -> Names {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), inode(&entry.path()))).collect()
}

fn inode(path: &Path) -> u64 {
    fs::symlink_metadata(path).unwrap().ino()
}
