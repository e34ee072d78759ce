//! What the figures depend on: cores, disk, sizes.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SYNCS: usize = 50;
/// What a small commit appends to the write-ahead log.
const SYNC_BYTES: usize = 4096;
/// Linux tells user space of a hundred ticks a second, whatever it does itself.
const TICK_MS: u64 = 10;

/// What runs, and on what.
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
}

/// What a commit costs at least, as it is now: the disk may be shared with others.
pub fn sync_time() -> Duration {
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

/// Processor time that a process and its children have used, those that ended among them, to a
/// hundredth of a second.
pub fn cpu(id: u32) -> Duration {
    let own = ticks(id).unwrap();
    // A child that ends meanwhile is missing.
    let theirs: u64 = children(id).into_iter().filter_map(ticks).sum();
    Duration::from_millis((own + theirs) * TICK_MS)
}

/// User and system time of a process and of its ended children; `None` when it has ended.
fn ticks(id: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    Some(ticks_in(&stat))
}

fn ticks_in(stat: &str) -> u64 {
    // The name, in brackets, may hold anything. Of the fields after it these are the 12th to the
    // 15th.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields = fields.split_whitespace().skip(11).take(4);
    fields.map(|field| field.parse::<u64>().unwrap()).sum()
}

/// Processor time of the thread that asks.
pub fn own_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    Duration::from_millis(ticks_in(&stat) * TICK_MS)
}

/// How often the threads of a process and of its children made way for others so far.
pub fn switches(id: u32) -> u64 {
    let family = [id].into_iter().chain(children(id));
    family.map(switches_of_threads).sum()
}

fn switches_of_threads(id: u32) -> u64 {
    // A process or thread that ends meanwhile is missing.
    let Ok(threads) = std::fs::read_dir(format!("/proc/{id}/task")) else {
        return 0;
    };
    let statuses = threads.filter_map(|thread| {
        let status = thread.ok()?.path().join("status");
        std::fs::read_to_string(status).ok()
    });
    let count = |status: String| {
        let lines = status
            .lines()
            .filter(|line| line.contains("_ctxt_switches:"));
        let counts = lines.filter_map(|line| line.rsplit('\t').next()?.parse::<u64>().ok());
        counts.sum::<u64>()
    };
    statuses.map(count).sum()
}

/// Processes that a process has started.
fn children(id: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).unwrap();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).ok())
        .flat_map(|ids| {
            ids.split_whitespace()
                .map(|id| id.parse().unwrap())
                .collect::<Vec<_>>()
        })
        .collect()
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

pub fn signal(id: u32, name: &str) {
    let sent = send(id, name).status().unwrap();
    assert!(sent.success());
}

/// Stops a process and its children, or lets them go on.
pub fn signal_family(id: u32, name: &str) {
    // First, so that it starts none meanwhile.
    signal(id, name);
    for child in children(id) {
        // One that has ended by now can't be told.
        let _ = send(child, name).stderr(Stdio::null()).status();
    }
}

fn send(id: u32, name: &str) -> Command {
    let mut command = Command::new("kill");
    command.args(["-s", name, &id.to_string()]);
    command
}

/// Size of the WebAssembly of the customers' pages as browsers fetch it, in bytes; `None` if it
/// isn't built.
pub fn wasm_bytes() -> Option<u64> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/site/pkg");
    let file = std::fs::read_dir(built)
        .ok()?
        .filter_map(Result::ok)
        .find(|file| {
            let name = file.file_name();
            let name = name.to_string_lossy();
            name.starts_with("heliograph.") && name.ends_with(".wasm.br")
        })?;
    Some(file.metadata().ok()?.len())
}
