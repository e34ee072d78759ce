//! What the figures depend on: cores, disk, sizes.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const SYNCS: usize = 200;
/// What a small commit appends to the write-ahead log.
const SYNC_BYTES: usize = 4096;

pub fn print() {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |rest| {
            rest.trim_start_matches([' ', '\t', ':'])
        });
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    println!("{cores} cores, {model}");
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!(
        "load before the start: {}",
        load.split(' ').next().unwrap_or_default()
    );
    let what = format!("fsync of {SYNC_BYTES} bytes, median of {SYNCS}");
    crate::row(&what, format!("{:.2?}", sync_time()), "≤ 1 ms");
}

fn sync_time() -> Duration {
    let folder = tempfile::tempdir().unwrap();
    let mut file = File::create(folder.path().join("sync")).unwrap();
    let block = [7_u8; SYNC_BYTES];
    let mut times: Vec<Duration> = (0..SYNCS)
        .map(|_| {
            file.write_all(&block).unwrap();
            let started = Instant::now();
            file.sync_data().unwrap();
            started.elapsed()
        })
        .collect();
    times.sort();
    times[SYNCS / 2]
}

/// Processor time that a process has used, to a hundredth of a second.
pub fn cpu(id: u32) -> Duration {
    /// Linux tells user space of a hundred ticks a second, whatever it does itself.
    const TICK_MS: u64 = 10;
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    // The name, in brackets, may hold anything. Of the fields after it user and system time are the 12th and 13th.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|field| field.parse::<u64>().unwrap())
        .sum();
    Duration::from_millis(ticks * TICK_MS)
}

/// Memory that a process holds, in KiB.
pub fn rss_kib(id: u32) -> u64 {
    status_kib(id, "VmRSS:")
}

/// The most that a process held since [`forget_peak`], in KiB.
pub fn peak_kib(id: u32) -> u64 {
    status_kib(id, "VmHWM:")
}

fn status_kib(id: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok())
        .unwrap()
}

/// From now on the peak counts from what the process holds now.
pub fn forget_peak(id: u32) {
    std::fs::write(format!("/proc/{id}/clear_refs"), "5").unwrap();
}

pub fn mib(kib: u64) -> String {
    format!("{}.{} MiB", kib / 1024, kib % 1024 * 10 / 1024)
}

pub fn signal(id: u32, name: &str) {
    let sent = Command::new("kill")
        .args(["-s", name, &id.to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

/// Size of the portal's WebAssembly as browsers fetch it.
pub fn print_wasm() {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/site/pkg/heliograph.wasm.br");
    let size = match std::fs::metadata(built) {
        Ok(file) => format!("{} KB", file.len().div_ceil(1000)),
        Err(_) => "not built (make build)".to_owned(),
    };
    crate::row("WebAssembly, brotli", size, "≤ 250 KB");
}
