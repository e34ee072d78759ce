//! Measures the speed of the sink with a client that needs almost no CPU time.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use super::frame;
use super::sink::Sink;

const SUBMITS: u32 = 300_000;

/// Submits half a window whenever half a window has been answered.
pub fn submits_per_second(window: usize) -> f64 {
    let sink = Sink::opened();
    let mut stream = TcpStream::connect(("127.0.0.1", sink.port())).unwrap();
    stream.set_nodelay(true).unwrap();
    let half = u32::try_from(window / 2).unwrap();
    let submits = frame::submits(half);
    stream.write_all(&submits).unwrap();
    let started = Instant::now();
    let mut buffer = vec![0; 64 * 1024];
    let (mut submitted, mut answered, mut filled) = (half, 0, 0);
    while answered < SUBMITS {
        while submitted < SUBMITS && submitted <= answered + half {
            stream.write_all(&submits).unwrap();
            submitted += half;
        }
        filled += stream.read(&mut buffer[filled..]).unwrap();
        let mut used = 0;
        while let Some(answer) = frame::Frame::first(&buffer[used..filled]) {
            used += answer.length();
            answered += 1;
        }
        buffer.copy_within(used..filled, 0);
        filled -= used;
    }
    f64::from(answered) / started.elapsed().as_secs_f64()
}
