//! Checks that every file of this suite runs.

use std::path::Path;

/// A file that isn't declared as a module isn't compiled, and its tests never run.
#[test]
fn every_file_is_a_module_of_the_suite() {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    for (folder, modules) in [
        (".", include_str!("main.rs")),
        ("cases", include_str!("cases/mod.rs")),
        ("database", include_str!("database/mod.rs")),
        ("postgres", include_str!("postgres/mod.rs")),
        ("sqlite", include_str!("sqlite/mod.rs")),
    ] {
        for name in names(&suite.join(folder)) {
            let is_of_it = |line: &str| line.trim_start_matches("pub ") == format!("mod {name};");
            let declared = modules.lines().any(is_of_it);
            assert!(declared, "no module names {folder}/{name}");
        }
    }
}

/// `on_each_backend` generates the tests of every case, so that no case runs on one database only.
#[test]
fn every_file_of_cases_lists_its_cases() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/cases");
    for name in names(&cases) {
        let text = std::fs::read_to_string(cases.join(format!("{name}.rs"))).unwrap();
        assert!(text.contains("\non_each_backend!["), "{name} lists no cases");
        assert!(!text.contains("test]\n"), "{name} has a test for one database");
    }
}

/// Returns the names of the modules in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = names.map(|name| name.trim_end_matches(".rs").to_owned());
    names.filter(|name| name != "main" && name != "mod").collect()
}
