//! `frontend-bindings WASM FOLDER`: from the WebAssembly that the compiler made, writes what a
//! browser can load: `FOLDER/heliograph_bg.wasm` and, to start it, `FOLDER/heliograph.js`.

use std::env;
use std::error::Error;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    let [wasm, folder] = arguments.as_slice() else {
        return Err("two arguments are needed: the WebAssembly and the folder to write to".into());
    };
    Bindgen::new()
        .input_path(wasm)
        .out_name("heliograph")
        .web(true)?
        .typescript(false)
        // frontend/site.mjs finds functions by their names.
        .remove_name_section(false)
        .remove_producers_section(true)
        .generate(folder)?;
    Ok(())
}
