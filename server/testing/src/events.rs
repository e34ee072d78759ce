//! Events that a peer in another process writes to its standard output, one JSON object per line.

use std::io::{BufRead as _, BufReader};
use std::process::Child;
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// Collects a peer's events as they arrive. The peer's standard output must be piped and not yet
/// taken. A line that isn't JSON (half a surrogate pair, for example) ends the reading. The test
/// then fails because the event that it waits for never arrives.
pub fn read_events(child: &mut Child) -> Arc<Mutex<Vec<Value>>> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let events = Arc::new(Mutex::new(Vec::new()));
    let read = Arc::clone(&events);
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let event =
                serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            read.lock().unwrap().push(event);
        }
    });
    events
}
