//! What a peer in another process tells on its standard output: an event in JSON on each line.

use std::io::{BufRead as _, BufReader};
use std::process::Child;
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// Reads a peer's events as they come. The peer's standard output must be piped, and nobody else
/// may have taken it. A line that isn't JSON (half a surrogate pair, say) ends the reading; the test
/// fails then because the event that it waits for never comes.
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
