//! `frontend-bindings WASM FOLDER` converts the compiler's WebAssembly into files that a browser
//! can load: `FOLDER/heliograph_bg.wasm`, and `FOLDER/heliograph.js`, which starts it.

use std::env;
use std::error::Error;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    let [wasm, folder] = arguments.as_slice() else {
        return Err("usage: frontend-bindings WASM FOLDER".into());
    };
    Bindgen::new()
        .input_path(wasm)
        .out_name("heliograph")
        .web(true)?
        .typescript(false)
        // frontend/site.mjs finds functions by name.
        .remove_name_section(false)
        .remove_producers_section(true)
        .generate(folder)?;
    Ok(())
}
