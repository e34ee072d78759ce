//! The examples of the API reference, run in a shell.

use std::process::Command;

use domain::DeliveryError;
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Place, TestServer};

/// Returns the commands on the page.
fn examples(page: &str) -> Vec<String> {
    let blocks = page.split("<code>").skip(1);
    let texts = blocks.filter_map(|block| Some(block.split_once("</code>")?.0));
    let commands = texts.filter(|text| text.starts_with("curl "));
    commands.map(unescaped).collect()
}

fn unescaped(text: &str) -> String {
    [("<!>", ""), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#x27;", "'"), ("&amp;", "&")]
        .into_iter()
        .fold(text.to_owned(), |text, (escaped, character)| text.replace(escaped, character))
}

#[test]
fn the_page_lists_the_errors_and_its_examples_send_again_when_asked() {
    // Most calls exceed this limit at first. They succeed because curl waits for Retry-After.
    let environment = [("HELIOGRAPH_REQUESTS_PER_SECOND", "2")];
    let server = TestServer::start(Place::new(), &["--demo"], &environment);
    let folder = TempDir::new().unwrap();
    for (file, rows) in [("bulksms.txt", "57000001,Hi\n"), ("numbers.txt", "57000001\n")] {
        std::fs::write(folder.path().join(file), rows).unwrap();
    }
    let page = server.get("/docs").text();
    assert!(page.contains("This is version 1 of the API."));
    for error in DeliveryError::ALL {
        assert!(page.contains(&format!(">{}<", error.as_str())), "{error:?}");
    }
    let examples = examples(&page);
    // One example per call, two for those with files, and one with the key in the header.
    assert_eq!(examples.len(), 28, "{examples:?}");
    let mut limited = 0;
    for example in examples {
        let changes = [
            "/sms/send",
            "/sms/verify",
            "/sms/bulk",
            "/sms/cancel",
            "/sms/test",
            " 'url=",
            " 'test=",
            " 'pause=",
            " 'number",
            " 'per_",
        ];
        let changes = changes.iter().any(|part| example.contains(part));
        assert!(example.contains("--retry 3"), "{example}");
        assert_eq!(example.contains("Idempotency-Key: "), changes, "{example}");
        let output = Command::new("sh")
            .args(["-c", &example.replace("YOUR_KEY", server.test_key())])
            .current_dir(folder.path())
            .output()
            .unwrap();
        // curl also prints the answers before the last attempt.
        let answers = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
        let answers: Vec<Value> = answers.map(|answer| answer.expect(&example)).collect();
        let answer = answers.last().expect(&example);
        limited += answers.len() - 1;
        // The IDs in the examples don't exist.
        let unknown = example
            .contains("_0000000000000")
            .then(|| if example.contains("/sms/verify/check") { "unknown" } else { "not_found" });
        // Limits need the live key.
        let locked = example.contains("/sms/limits/").then_some("limits_locked");
        let reason = unknown.or(locked);
        assert_eq!(answer["reason"].as_str(), reason, "{example}: {answer}");
    }
    assert!(limited > 0);
}
