//! Fuzz targets: one function for each parser. Each takes any bytes and panics if the parser breaks
//! one of its promises.
//!
//! The programs in `fuzz_targets` give the functions to libFuzzer. `tests/corpora.rs` runs them on
//! the corpora without it.
#![expect(clippy::missing_panics_doc, reason = "a panic is how a target reports a fault")]

mod csv;
mod key;
mod multipart;
mod number;
mod pdu;
mod pieces;
mod query;
mod receipt;
mod segments;
mod settings;
mod submit;
mod upload;
mod webhook_url;

pub use csv::csv;
pub use key::key;
pub use multipart::multipart;
pub use number::number;
pub use pdu::pdu;
pub use query::query;
pub use receipt::receipt;
pub use segments::segments;
pub use settings::settings;
pub use submit::submit;
pub use webhook_url::webhook_url;

/// A target.
pub type Target = fn(&[u8]);

/// All targets, by the names of their programs and corpora.
pub const TARGETS: [(&str, Target); 11] = [
    ("csv", csv),
    ("key", key),
    ("multipart", multipart),
    ("number", number),
    ("pdu", pdu),
    ("query", query),
    ("receipt", receipt),
    ("segments", segments),
    ("settings", settings),
    ("submit", submit),
    ("webhook_url", webhook_url),
];

/// Makes a file the program of a target.
#[macro_export]
macro_rules! program {
    ($target:ident) => {
        #[cfg(feature = "libfuzzer")]
        libfuzzer_sys::fuzz_target!(|data: &[u8]| $crate::$target(data));

        #[cfg(not(feature = "libfuzzer"))]
        fn main() {
            eprintln!("Build this with .make/fuzz.");
        }
    };
}
