//! The `heliograph` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    heliograph::main()
}
