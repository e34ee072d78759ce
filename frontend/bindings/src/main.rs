//! `frontend-bindings WASM FOLDER` converts the compiler's WebAssembly into files that a browser
//! can load. It writes these files into the folder:
//!
//! - `heliograph_bg.wasm`: the program, without the parts that only some pages need
//! - `split_NAME.wasm` and `chunk_N.wasm`: those parts (see `app::parts`), and what several share
//! - `heliograph.js` and `parts.js`: the scripts that start the program and load the parts
//! - `parts.txt`: the names of each part's files, in the form `NAME: FILE FILE ...`

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use wasm_bindgen_cli_support::Bindgen;
use wasm_split_cli_support::{Options, transform};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    let [wasm, folder] = arguments.as_slice() else {
        return Err("usage: frontend-bindings WASM FOLDER".into());
    };
    let folder = Path::new(folder);
    let program = folder.join("program.wasm");
    divide(&fs::read(wasm)?, &program, folder)?;
    Bindgen::new()
        .input_path(&program)
        .out_name("heliograph")
        .web(true)?
        .typescript(false)
        // The parts share the program's table of functions.
        .keep_lld_exports(true)
        // frontend/site.mjs finds functions by name, in all files by the same one.
        .remove_name_section(false)
        .demangle(false)
        .remove_producers_section(true)
        .generate(folder)?;
    Ok(())
}

/// Writes the parts and their list into the folder, and the rest to `program`.
fn divide(wasm: &[u8], program: &Path, folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut options = Options::new(wasm);
    options.output_dir = folder;
    options.main_out_path = program;
    options.link_name = "./parts.js";
    options.main_module = "./heliograph.js";
    let parts = transform(options)?.prefetch_map;
    let mut list = String::new();
    for (name, files) in &parts {
        writeln!(list, "{name}: {}", files.join(" "))?;
    }
    fs::write(folder.join("parts.txt"), list)?;
    Ok(())
}
