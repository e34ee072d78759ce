//! The time and memory of a start, and the size of the WebAssembly.

use crate::machine;
use crate::server::{self, Server};
use crate::table::{Figure, Table, Target, float};

const STARTS: usize = 5;

pub fn measure(table: &mut Table) {
    let (mut times, rss) = server::starts(STARTS);
    times.sort();
    let what = format!("start to ready, migrated database, median of {STARTS}");
    table.add(what, Figure::millis(times[times.len() / 2]), Target::AtMost(300.0));
    table.add("RSS after such a start", Figure::mebibytes_of(rss), Target::AtMost(40.0));
    let rss = machine::rss_kib(Server::start().id());
    let what = "RSS after a start with demo data, whose passwords are hashed";
    table.add(what, Figure::mebibytes_of(rss), Target::AtMost(40.0));
    for (what, part) in [
        ("WebAssembly of a page without an account, brotli", "guests"),
        ("WebAssembly of My Applications, brotli", "applications"),
        ("WebAssembly of the account's pages, brotli", "account"),
        ("WebAssembly of the staff pages, brotli", "staff"),
    ] {
        match machine::wasm_bytes(part) {
            Some(bytes) => {
                table.add(what, Figure::Kilobytes(float(bytes) / 1000.0), Target::AtMost(300.0));
            }
            None => table.not_measured(what, "it isn't built (make build)"),
        }
    }
}
