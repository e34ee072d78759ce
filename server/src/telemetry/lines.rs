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
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Longer than any test.
    const NEVER: Duration = Duration::from_hours(1);

    /// Sends the written text to the test.
    struct Seen(Sender<String>);

    impl Write for Seen {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            let words = String::from_utf8(text.to_vec()).unwrap();
            self.0.send(words).unwrap();
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn started(gather: Duration) -> (Lines, Receiver<String>) {
        let (sender, seen) = channel();
        (Lines::start(Seen(sender), gather).unwrap(), seen)
    }

    fn log(lines: &Lines, text: &str, urgent: bool) {
        Line { lines, urgent }.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn gathered_lines_are_written_with_an_urgent_one() {
        let (lines, seen) = started(NEVER);
        log(&lines, "one\n", false);
        log(&lines, "two\n", false);
        log(&lines, "broken\n", true);
        assert_eq!(seen.recv().unwrap(), "one\ntwo\nbroken\n");
        log(&lines, "again\n", true);
        assert_eq!(seen.recv().unwrap(), "again\n");
    }

    #[test]
    fn a_line_stays_one_line_without_control_characters() {
        let (lines, seen) = started(NEVER);
        log(&lines, "said: \u{1b}[2J\n\u{202e}\u{e9}\n", true);
        assert_eq!(seen.recv().unwrap(), "said: \\u{1b}[2J\\u{a}\\u{202e}\u{e9}\n");
    }

    #[test]
    fn a_single_line_is_written_after_the_gathering_time() {
        let (lines, seen) = started(Duration::from_millis(1));
        log(&lines, "alone\n", false);
        assert_eq!(seen.recv().unwrap(), "alone\n");
    }

    #[test]
    fn a_flush_waits_for_every_line_before_it() {
        let (lines, seen) = started(NEVER);
        let logging = (0..4).map(|thread| {
            let lines = lines.clone();
            thread::spawn(move || {
                for line in 0..1_000 {
                    log(&lines, &format!("{thread} {line}\n"), false);
                }
            })
        });
        for logged in logging.collect::<Vec<_>>() {
            logged.join().unwrap();
        }
        lines.flush();
        let text: String = seen.try_iter().collect();
        for thread in 0..4 {
            let prefix = format!("{thread} ");
            let of_thread = text.lines().filter_map(|line| line.strip_prefix(&prefix));
            assert!(of_thread.eq((0..1_000).map(|line| line.to_string())));
        }
    }
}
