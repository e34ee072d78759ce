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
