//! Clients that third-party generators make from the OpenAPI document. They have every operation,
//! and the server understands their requests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use domain::Reference;
use domain::limits::LimitsChange;
use serde_json::Value;
use service::LimitsAuthor;
use tempfile::TempDir;

use crate::harness::{Place, TestServer};

/// The folder of the programs that call every operation, and of the generators from npm.
const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients");
/// Parts of openapi-generator's output that aren't needed.
const WITHOUT: &str = "apiTests=false,modelTests=false,apiDocs=false,modelDocs=false";

/// A server, and a folder with its OpenAPI document as `openapi.json`.
struct Bench {
    server: TestServer,
    folder: TempDir,
}

impl Bench {
    fn start() -> Self {
        set_up();
        let environment = [("HELIOGRAPH_REQUESTS_PER_SECOND", "1000")];
        let server = TestServer::start(Place::new(), &["--demo"], &environment);
        let folder = TempDir::new().unwrap();
        let document = server.get("/openapi.json").text();
        std::fs::write(folder.path().join("openapi.json"), document).unwrap();
        let modules = Path::new(PROGRAMS).join("node_modules");
        std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).unwrap();
        Self { server, folder }
    }

    /// Runs a command in the folder, with the Python packages in its path. Returns its output.
    fn run(&self, program: &str, arguments: &[&str]) -> String {
        let output = Command::new(program)
            .args(arguments)
            .current_dir(self.folder.path())
            .env("PYTHONPATH", tools().join("generators"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            // The program runs for only two seconds, so optimizing it isn't worth the time.
            .env("JAVA_OPTS", "-XX:TieredStopAtLevel=1")
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let printed = text(&output.stdout);
        let complaints = text(&output.stderr);
        assert!(output.status.success(), "{program} {arguments:?}: {printed} {complaints}");
        printed
    }

    /// Generates a client with openapi-generator. It doesn't support the section `webhooks`, and
    /// makes invalid code of it.
    fn generate(&self, generator: &str, more: &[&str]) {
        let place = self.folder.path().join("openapi.json");
        let mut document: Value = serde_json::from_slice(&std::fs::read(&place).unwrap()).unwrap();
        document.as_object_mut().unwrap().remove("webhooks").unwrap();
        std::fs::write(place, document.to_string()).unwrap();
        let code = "import openapi_generator_cli as cli; cli.cli()";
        let arguments = ["-c", code, "generate", "-i", "openapi.json", "-g", generator];
        let rest = ["--global-property", WITHOUT];
        self.run("python3", &[&arguments, more, &rest].concat());
    }

    /// Copies a program next to the client.
    fn copy(&self, name: &str) {
        std::fs::copy(Path::new(PROGRAMS).join(name), self.folder.path().join(name)).unwrap();
    }

    /// Compiles a program and the client for Node, which checks the types of both.
    fn compile(&self, program: &str) {
        self.copy(program);
        self.copy("tsconfig.json");
        self.run("node_modules/.bin/tsc", &["--project", "tsconfig.json"]);
    }

    /// Lets the live key change the limits, as the owner does in the portal.
    fn allow_changes_of_limits(&self) {
        let reference = Reference::parse(self.server.reference()).unwrap();
        self.server.place.with_service(async |service| {
            let applications = service.applications();
            let found = applications.find_application(reference).await.unwrap().unwrap();
            let account = service.accounts().find_account(&found.email).await.unwrap().unwrap();
            let author = LimitsAuthor::Owner(account.id);
            let change = LimitsChange::by_api(true);
            applications.change_limits(reference, author, change).await.unwrap();
        });
    }

    /// Runs a program, which must call every operation and get an answer to each.
    fn calls_everything(&self, interpreter: &str, program: &str) {
        let (url, key) = (format!("http://{}", self.server.address()), self.server.test_key());
        self.allow_changes_of_limits();
        let printed = self.run(interpreter, &[program, &url, key, self.server.key()]);
        let lines = printed.lines().map(|line| line.split_once(' ').unwrap());
        let calls: Vec<(&str, &str)> = lines.collect();
        for (operation, word) in &calls {
            match (*operation, word.get(..2)) {
                (_, Some("m_")) => {
                    let report = self.server.report(key, word);
                    // Once an upload's rows are messages, they are the newest ones.
                    assert!(report["message"].as_str().unwrap().starts_with("Hi"), "{report}");
                }
                (_, Some("b_")) => assert_eq!(self.server.batch(key, word)["rows"], 2),
                (_, Some("w_" | "e_" | "v_")) => {}
                ("balance" | "balanceWithHeader" | "prices", _) => assert_eq!(*word, "USD"),
                ("inbound" | "inboundWithHeader" | "testClockWithHeader", _) => {
                    assert_eq!(*word, "0");
                }
                ("pricesWithHeader", _) => assert_eq!(*word, "international_not_8_digits"),
                ("openapi", _) => assert_eq!(*word, "3.1.0"),
                ("optouts" | "optoutsWithHeader", _) => assert_eq!(*word, "26671234568"),
                ("cancelWithHeader", _) => assert_eq!(*word, "2"),
                ("cancel" | "changeOptouts" | "changeOptoutsWithHeader", _) => {
                    assert_eq!(*word, "1");
                }
                ("verifyCheck" | "verifyCheckWithHeader", _) => assert_eq!(*word, "4"),
                ("testInbound" | "testInboundWithHeader", _) => assert_eq!(*word, "Hi"),
                ("testClock", _) => assert_eq!(*word, "60"),
                ("limits" | "limitsWithHeader" | "changeLimits" | "changeLimitsWithHeader", _) => {
                    assert_eq!(*word, "7");
                }
                ("refused", _) => assert_eq!(*word, "api_invalid"),
                _ => panic!("{operation}: {word}"),
            }
        }
        let called: BTreeSet<&str> = calls.iter().map(|(operation, _)| *operation).collect();
        let document = self.server.get("/openapi.json").json();
        let mut expected = operations(&document);
        expected.insert("refused");
        assert_eq!(called, expected, "{program}");
    }
}

/// Returns the IDs of all operations.
fn operations(document: &Value) -> BTreeSet<&str> {
    let paths = document["paths"].as_object().unwrap().values();
    let operations = paths.flat_map(|operations| operations.as_object().unwrap().values());
    operations.map(|operation| operation["operationId"].as_str().unwrap()).collect()
}

fn tools() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools")
}

fn set_up() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let setup = Command::new(root.join(".make/setup")).arg("clients").status();
        assert!(setup.unwrap().success(), "`.make/setup clients` failed");
    });
}

#[test]
fn a_client_by_openapi_python_client_calls_everything() {
    let bench = Bench::start();
    let settings = format!("{PROGRAMS}/openapi_python_client.yaml");
    let printed = bench.run(
        "python3",
        &[
            "-m",
            "openapi_python_client",
            "generate",
            "--path",
            "openapi.json",
            "--config",
            &settings,
            "--meta",
            "none",
            "--output-path",
            "sms_client",
            "--fail-on-warning",
        ],
    );
    assert!(!printed.contains("Warning"), "{printed}");
    bench.copy("openapi_python_client.py");
    bench.calls_everything("python3", "openapi_python_client.py");
}

#[test]
fn a_python_client_by_openapi_generator_calls_everything() {
    let bench = Bench::start();
    bench.generate("python", &["-o", ".", "--package-name", "sms_client"]);
    bench.copy("openapi_generator.py");
    bench.calls_everything("python3", "openapi_generator.py");
}

#[test]
fn a_typescript_client_by_openapi_generator_calls_everything() {
    let bench = Bench::start();
    bench.generate("typescript-fetch", &["-o", "sms_client"]);
    bench.compile("openapi_generator.ts");
    bench.calls_everything("node", "openapi_generator.js");
}

#[test]
fn a_typescript_client_by_openapi_typescript_calls_everything() {
    let bench = Bench::start();
    let generator = "node_modules/.bin/openapi-typescript";
    bench.run(generator, &["openapi.json", "--output", "sms_client.d.ts"]);
    bench.compile("openapi_typescript.ts");
    bench.calls_everything("node", "openapi_typescript.js");
}
