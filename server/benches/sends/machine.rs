//! What the figures depend on: cores, disk, sizes.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
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
    println!(
        "fsync of {SYNC_BYTES} bytes: {:.2?} (median of {SYNCS})",
        sync_time()
    );
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

/// Memory that a process holds, in words.
pub fn rss(id: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let kib: Option<u32> = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok());
    kib.map_or("unknown".to_owned(), |kib| {
        format!("{:.1} MiB", f64::from(kib) / 1024.0)
    })
}

/// Size of the portal's WebAssembly as browsers fetch it.
pub fn print_wasm() {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/site/pkg/heliograph.wasm.br");
    match std::fs::metadata(built) {
        Ok(file) => println!("WebAssembly, brotli: {} KB", file.len().div_ceil(1000)),
        Err(_) => println!("WebAssembly: not built (make build)"),
    }
}
