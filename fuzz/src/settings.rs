//! The settings file.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use heliograph::fuzzing;

thread_local! {
    static FILE: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
}

/// Settings are read, or refused with a sentence. Settings that are written again are read again.
pub fn settings(data: &[u8]) {
    // A setting may name a file, and a device may have no end.
    if ["/dev", "/proc"].iter().any(|name| contains(data, name.as_bytes())) {
        return;
    }
    let set = match read(data) {
        Ok(set) => set,
        Err(refusal) => {
            assert!(!refusal.is_empty());
            return;
        }
    };
    let written = set.iter().fold(String::new(), |mut written, (name, text)| {
        let _ = writeln!(written, "{name} = \"{}\"", escaped(text));
        written
    });
    assert_eq!(read(written.as_bytes()), Ok(set));
}

fn contains(data: &[u8], part: &[u8]) -> bool {
    data.windows(part.len()).any(|window| window == part)
}

fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut escaped, c| {
        // Writing into a `String` never fails.
        let _ = write!(escaped, "\\U{:08x}", u32::from(c));
        escaped
    })
}

fn read(text: &[u8]) -> Result<Vec<(String, String)>, String> {
    FILE.with_borrow_mut(|file| {
        let path = file.get_or_insert_with(path);
        write(path, text);
        fuzzing::settings(path)
    })
}

/// Returns a file of this process and thread, in memory where the machine has that.
fn path() -> PathBuf {
    let shared = Path::new("/dev/shm");
    let folder = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
    let thread = format!("{:?}", std::thread::current().id());
    let thread: String = thread.chars().filter(char::is_ascii_digit).collect();
    folder.join(format!("heliograph-fuzz-{}-{thread}.toml", std::process::id()))
}

#[expect(clippy::expect_used, reason = "without the file, nothing is tested")]
fn write(path: &Path, text: &[u8]) {
    fs::write(path, text).expect("the settings file can be written");
}
