//! Runs each target on its corpus, and on inputs that differ from it in one place. `.make/fuzz`
//! falls back on this where the targets can't be built.

use std::fs;
use std::path::Path;

use fuzz::TARGETS;

/// The most places of an input that are changed.
const PLACES_MAX: usize = 20;
/// Bytes that mean something to one of the parsers.
const BYTES: &[u8] = b"\0\n\"+,;=&%:\x7f\xff";

#[test]
fn no_target_fails_on_its_corpus_or_near_it() {
    for (name, target) in TARGETS {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
        let mut files = 0;
        for file in fs::read_dir(&corpus).unwrap() {
            let path = file.unwrap().path();
            let input = fs::read(&path).unwrap();
            let run = |input: &[u8]| {
                let ran = std::panic::catch_unwind(|| target(input));
                assert!(ran.is_ok(), "{name} fails near {}: {input:?}", path.display());
            };
            run(&input);
            let step = input.len().div_ceil(PLACES_MAX).max(1);
            for place in (0..input.len()).step_by(step) {
                run(&input[..place]);
                for byte in BYTES {
                    let mut changed = input.clone();
                    changed[place] = *byte;
                    run(&changed);
                }
            }
            files += 1;
        }
        assert!(files > 0, "{name} has no corpus");
    }
}
