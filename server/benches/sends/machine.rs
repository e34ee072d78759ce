//! The machine and its processes: cores, CPU time, memory, fsync.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SYNCS: usize = 50;
/// The bytes that a small commit appends to the write-ahead log.
const SYNC_BYTES: usize = 4096;
/// Linux reports CPU time in ticks of a hundredth of a second, whatever its internal clock.
const TICK_MS: u64 = 10;

/// Prints the processor and the load.
pub fn print() {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |rest| rest.trim_start_matches([' ', '\t', ':']));
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    println!("{cores} cores, {model}");
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load before the start: {}", load.split(' ').next().unwrap_or_default());
}

/// Measures the median time of an fsync, which is the least that a commit takes. It changes over
/// time if other machines share the disk.
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

/// Returns the CPU time of a process and its children, including ended ones, to a hundredth of a
/// second.
pub fn cpu(id: u32) -> Duration {
    let own = ticks(id).unwrap();
    // A child that ends in between isn't counted.
    let theirs: u64 = children(id).into_iter().filter_map(ticks).sum();
    Duration::from_millis((own + theirs) * TICK_MS)
}

/// Returns the user and system time of a process and its ended children. `None` if it has ended.
fn ticks(id: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    Some(ticks_in(&stat))
}

fn ticks_in(stat: &str) -> u64 {
    // The process name, in parentheses, may contain anything. The times are fields 12 to 15 after
    // it.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields = fields.split_whitespace().skip(11).take(4);
    fields.map(|field| field.parse::<u64>().unwrap()).sum()
}

/// Returns the CPU time of the current thread.
pub fn own_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    Duration::from_millis(ticks_in(&stat) * TICK_MS)
}

/// Returns the number of context switches so far, of all threads of a process and its children.
pub fn switches(id: u32) -> u64 {
    let family = [id].into_iter().chain(children(id));
    family.map(switches_of_threads).sum()
}

fn switches_of_threads(id: u32) -> u64 {
    // A process or thread that ends in between isn't counted.
    let Ok(threads) = std::fs::read_dir(format!("/proc/{id}/task")) else {
        return 0;
    };
    let statuses = threads.filter_map(|thread| {
        let status = thread.ok()?.path().join("status");
        std::fs::read_to_string(status).ok()
    });
    let count = |status: String| {
        let lines = status.lines().filter(|line| line.contains("_ctxt_switches:"));
        let counts = lines.filter_map(|line| line.rsplit('\t').next()?.parse::<u64>().ok());
        counts.sum::<u64>()
    };
    statuses.map(count).sum()
}

/// Returns the child processes of a process.
fn children(id: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).unwrap();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).ok())
        .flat_map(|ids| ids.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}

/// Returns the resident memory of a process in KiB.
pub fn rss_kib(id: u32) -> u64 {
    status_kib(id, "VmRSS:")
}

/// Returns the highest resident memory of a process since [`forget_peak`], in KiB.
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

/// Resets the peak of a process to its current memory.
pub fn forget_peak(id: u32) {
    std::fs::write(format!("/proc/{id}/clear_refs"), "5").unwrap();
}

pub fn signal(id: u32, name: &str) {
    let sent = send(id, name).status().unwrap();
    assert!(sent.success());
}

/// Sends a signal, STOP or CONT, to a process and its children.
pub fn signal_family(id: u32, name: &str) {
    // The parent comes first, so that it starts no children meanwhile.
    signal(id, name);
    for child in children(id) {
        // A child may have ended by now.
        let _ = send(child, name).stderr(Stdio::null()).status();
    }
}

fn send(id: u32, name: &str) -> Command {
    let mut command = Command::new("kill");
    command.args(["-s", name, &id.to_string()]);
    command
}

/// Returns the size of the WebAssembly that the pages of a part load (`app::parts`) in bytes,
/// compressed with brotli. `None` if it isn't built.
pub fn wasm_bytes(part: &str) -> Option<u64> {
    let site = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/site");
    let list = std::fs::read_to_string(site.join("hash.txt")).ok()?;
    let find = |key: &str| list.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
    let program = format!("heliograph.{}.wasm", find("wasm")?);
    let files = find(part)?.split(' ').chain([program.as_str()]);
    files.map(|name| Some(site.join(format!("pkg/{name}.br")).metadata().ok()?.len())).sum()
}
