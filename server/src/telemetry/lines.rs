//! Writes log lines in a separate thread.
//!
//! Logging puts a line into a queue. That takes no lock while the writing thread is busy or gathers
//! lines. The thread writes the gathered lines in one call, because waking it for every line would
//! cost several times as much as the line.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use domain::printable::printable;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// How long lines are gathered. A warning or an error ends the gathering early. A process that is
/// killed loses the lines of this time.
pub const GATHER: Duration = Duration::from_millis(10);
/// The number of lines that may wait for a slow terminal. Beyond that, requests wait too. No line
/// is dropped, because an operator might look for it.
const LINES_WAITING_MAX: usize = 16_384;
/// The size at which the gathered lines are written.
const TEXT_BYTES_MAX: usize = 64 * 1024;
/// How long a stalled terminal may delay the end of the process.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause before a retry while the queue is full.
const FULL_PAUSE: Duration = Duration::from_millis(1);

/// The queue of log lines. Clones share it.
#[derive(Clone)]
pub struct Lines {
    queue: SyncSender<Entry>,
    /// True if a pending line must be written at once.
    urgent: Arc<AtomicBool>,
    thread: Thread,
}

enum Entry {
    Line(Vec<u8>),
    /// Asks for a signal when every line before it is written.
    Flush(SyncSender<()>),
}

impl Lines {
    /// Starts the writing thread. It ends with the process.
    pub fn start(out: impl Write + Send + 'static, gather: Duration) -> io::Result<Self> {
        let (queue, entries) = sync_channel(LINES_WAITING_MAX);
        let urgent = Arc::new(AtomicBool::new(false));
        let writing = Writing {
            out,
            text: Vec::with_capacity(TEXT_BYTES_MAX),
            urgent: Arc::clone(&urgent),
            gather,
        };
        let handle =
            thread::Builder::new().name("log".to_owned()).spawn(move || writing.run(&entries))?;
        Ok(Self { queue, urgent, thread: handle.thread().clone() })
    }

    /// Waits until every line before this call is written, but no longer than [`FLUSH_TIMEOUT`].
    pub fn flush(&self) {
        let deadline = Instant::now() + FLUSH_TIMEOUT;
        let (written, is_written) = sync_channel(1);
        let mut entry = Entry::Flush(written);
        while let Err(TrySendError::Full(back)) = self.queue.try_send(entry) {
            if Instant::now() >= deadline {
                return;
            }
            entry = back;
            thread::sleep(FULL_PAUSE);
        }
        self.hurry();
        // After the timeout, the lines are lost.
        let _ = is_written.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    }

    fn hurry(&self) {
        self.urgent.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line { lines: self, urgent: false }
    }

    fn make_writer_for(&'a self, about: &Metadata<'_>) -> Line<'a> {
        Line { lines: self, urgent: *about.level() <= Level::WARN }
    }
}

/// A writer for one line.
pub struct Line<'a> {
    lines: &'a Lines,
    urgent: bool,
}

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let sent = self.lines.queue.send(Entry::Line(line.to_vec()));
        sent.map_err(|_| io::ErrorKind::BrokenPipe)?;
        if self.urgent {
            self.lines.hurry();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The state of the writing thread.
struct Writing<W> {
    out: W,
    text: Vec<u8>,
    urgent: Arc<AtomicBool>,
    gather: Duration,
}

impl<W: Write> Writing<W> {
    fn run(mut self, entries: &Receiver<Entry>) {
        while let Ok(first) = entries.recv() {
            self.gather();
            for entry in std::iter::once(first).chain(entries.try_iter()) {
                self.take(entry);
            }
            self.write();
        }
    }

    /// Waits for more lines, until the time is over or a line is urgent.
    fn gather(&self) {
        let until = Instant::now() + self.gather;
        while !self.urgent.swap(false, Ordering::Acquire) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::park_timeout(left);
        }
    }

    fn take(&mut self, entry: Entry) {
        match entry {
            Entry::Line(line) => {
                self.add(&line);
                if self.text.len() >= TEXT_BYTES_MAX {
                    self.write();
                }
            }
            Entry::Flush(written) => {
                self.write();
                // The caller may have given up.
                let _ = written.send(());
            }
        }
    }

    /// Adds a line. The line may quote outside text, so only the line feed at its end is kept.
    /// Others are escaped.
    fn add(&mut self, line: &[u8]) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let plain = line.iter().all(|byte| matches!(byte, b' '..=b'~'));
        if plain {
            self.text.extend(line);
        } else {
            let words = String::from_utf8_lossy(line);
            self.text.extend(printable(&words).as_bytes());
        }
        self.text.push(b'\n');
    }

    /// Writes the gathered lines. Lines that can't be written are lost, because the failure can't
    /// be reported anywhere else.
    fn write(&mut self) {
        let _ = self.out.write_all(&self.text);
        self.text.clear();
    }
}

#[cfg(test)]
mod tests;
