//! `heliograph doctor`, and starts that fail because of the owners of files.

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use domain::{Email, Password};
use serde_json::Value;
use service::Actor;
use testing::smsc::Smsc;

use crate::harness::{Place, TestServer, until};

/// A user that the tests' files can belong to.
const SERVICE_USER: u32 = 12345;

/// The findings of a run of the doctor.
struct Found(Vec<Value>);

impl Found {
    /// Runs the doctor. Its exit code must be 1 if it found a fault.
    fn of(place: &Place, environment: &[(&str, &str)]) -> Self {
        let output = place
            .command(&["doctor", "--json"])
            .env("HELIOGRAPH_ALLOW_SANDBOX", "true")
            .envs(environment.iter().copied())
            .output()
            .unwrap();
        let found: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let has_fault = found.iter().any(|finding| finding["result"] == "fault");
        assert_eq!(output.status.code(), Some(i32::from(has_fault)), "{found:?}");
        Self(found)
    }

    /// Checks that a check had this result, and returns its text, which must contain these words.
    fn is(&self, check: &str, result: &str, words: &str) -> &str {
        let fits = |finding: &&Value| {
            finding["check"] == check
                && finding["result"] == result
                && finding["text"].as_str().unwrap().contains(words)
        };
        let found = self.0.iter().find(fits);
        found.unwrap_or_else(|| panic!("{check} {result} {words}: {:#?}", self.0))["text"]
            .as_str()
            .unwrap()
    }
}

/// Returns the files in a place's data folder, with their owners, permissions and contents.
fn kept(place: &Place) -> Vec<(PathBuf, u32, u32, Vec<u8>)> {
    let files = fs::read_dir(place.path().join("data")).unwrap();
    let mut kept: Vec<_> = files
        .map(|file| {
            let path = file.unwrap().path();
            let metadata = fs::metadata(&path).unwrap();
            let content = fs::read(&path).unwrap_or_default();
            (path, metadata.uid(), metadata.mode(), content)
        })
        .collect();
    kept.sort();
    kept
}

/// Serves a site of somebody else, whose clock is wrong. Returns its address.
fn other_site() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(
                b"HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Length: 0\r\n\
                  Connection: close\r\n\r\n",
            );
        }
    });
    address
}

#[test]
fn a_sound_installation_has_no_fault_and_stays_as_it_is() {
    let server = TestServer::empty();
    let url = server.ready["url"].as_str().unwrap().to_owned();
    let ops = server.ready["ops_url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    let with = |url: &str| {
        let environment = [("HELIOGRAPH_BASE_URL", url), ("HELIOGRAPH_OPS_ADDR", &ops)];
        Found::of(&server.place, &environment)
    };
    let found = with(&url);
    let sound = ["settings", "files", "clock", "database", "secret key", "hold", "backup"];
    for check in sound.into_iter().chain(["service", "base URL"]) {
        found.is(check, "ok", "");
    }
    found.is("mail", "warning", "smtp_url");

    let other = other_site();
    let found = with(&format!("http://{other}"));
    found.is("base URL", "fault", "doesn't lead to this installation");
    found.is("clock", "warning", "ahead of the clock at the base URL");
    let found = with(&format!("https://{other}"));
    found.is("base URL", "fault", "the proxy with its certificate");

    let (_, place) = server.stop();
    let before = kept(&place);
    let environment = [("HELIOGRAPH_BASE_URL", &*url), ("HELIOGRAPH_OPS_ADDR", &*ops)];
    let found = Found::of(&place, &environment);
    for check in sound {
        found.is(check, "ok", "");
    }
    found.is("service", "warning", "sudo systemctl start");
    found.is("base URL", "warning", "Connection refused");
    assert!(kept(&place) == before, "the doctor changed a file");

    // A restored database will be held, although no server has opened it yet.
    let copy = place.path().join("copy.db");
    place.json(&["backup", copy.to_str().unwrap()]);
    let elsewhere = Place::new();
    elsewhere.json(&["restore", copy.to_str().unwrap()]);
    Found::of(&elsewhere, &[]).is("hold", "warning", "The next start holds all messages");

    // Without --json, there is a line for each check.
    let output = place.run(&["doctor"]);
    assert_eq!(output.status.code(), Some(1));
    let words = String::from_utf8(output.stdout).unwrap();
    let settings = words.lines().find(|line| line.contains("settings")).unwrap();
    assert!(settings.starts_with("fault ") && settings.contains("ALLOW_SANDBOX"), "{words}");
}

#[test]
fn a_missing_database_isnt_made() {
    let place = Place::new();
    let found = Found::of(&place, &[]);
    found.is("files", "warning", "The first start creates it");
    found.is("database", "fault", "heliograph migrate");
    assert!(!place.path().join("data").exists());
    place.json(&["migrate"]);
    Found::of(&place, &[]).is("database", "warning", "Start the server");
}

/// Runs the command that a text names, without `sudo`.
fn repair(text: &str) {
    let (_, command) = text.split_once("`sudo chown").or(text.split_once("`sudo chmod")).unwrap();
    let (arguments, _) = command.split_once('`').unwrap();
    let program = if text.contains("`sudo chown") { "chown" } else { "chmod" };
    let done = Command::new("sh").arg("-c").arg(format!("{program}{arguments}")).status().unwrap();
    assert!(done.success(), "{text}");
}

fn give(path: &Path, owner: u32) {
    chown(path, Some(owner), Some(owner)).unwrap();
}

#[test]
fn wrong_owners_and_permissions_come_with_the_command_that_repairs_them() {
    let place = Place::new();
    place.json(&["migrate"]);
    let key = place.path().join("data/secret.key");
    fs::write(&key, "00".repeat(32)).unwrap();
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let found = Found::of(&place, &[]);
    repair(found.is("files", "fault", "data/secret.key"));
    assert_eq!(fs::metadata(&key).unwrap().mode() & 0o777, 0o600);
    Found::of(&place, &[]).is("files", "ok", "");

    if fs::metadata(&key).unwrap().uid() != 0 {
        eprintln!("only root can make files of other users");
        return;
    }
    for (file, ..) in kept(&place) {
        give(&file, SERVICE_USER);
    }
    give(&place.path().join("data"), SERVICE_USER);
    give(place.path(), SERVICE_USER);
    give(&key, 0);
    let found = Found::of(&place, &[]);
    let text = found.is("files", "fault", "`sudo chown 12345:12345 /");
    assert!(text.contains("data/secret.key") && !text.contains("heliograph.db"), "{text}");
    let start = place
        .command(&["serve"])
        .env("HELIOGRAPH_ALLOW_SANDBOX", "true")
        .uid(SERVICE_USER)
        .gid(SERVICE_USER)
        .output()
        .unwrap();
    let words = String::from_utf8(start.stderr).unwrap();
    assert_eq!(start.status.code(), Some(1), "{words}");
    let last = words.lines().last().unwrap();
    assert!(last.contains("Permission denied") && last.contains(text), "{words}");
    repair(last);
    Found::of(&place, &[]).is("files", "ok", "12345");
    // The doctor, as root, left no file behind that the service can't use.
    assert!(kept(&place).iter().all(|(_, owner, ..)| *owner == SERVICE_USER));
}

#[test]
fn a_key_that_doesnt_open_what_is_sealed_is_a_fault() {
    let place = Place::new();
    place.with_service(async |service| {
        let email = Email::parse("one@example.org").unwrap();
        let password = Password::parse("correct horse battery").unwrap();
        let accounts = service.accounts();
        let account = accounts.add_account(&Actor::System, &email, &password, false).await.unwrap();
        let secret = accounts.new_totp_secret();
        let code = secret.code(service.clock().now());
        accounts.set_up_factor(account.id, &secret, &code, "").await.unwrap();
    });
    let key = place.path().join("data/secret.key");
    Found::of(&place, &[]).is("secret key", "ok", "data/secret.key");
    fs::write(&key, "00".repeat(32)).unwrap();
    Found::of(&place, &[]).is("secret key", "fault", "the file that they were sealed with");
    fs::remove_file(&key).unwrap();
    Found::of(&place, &[]).is("secret key", "fault", "Put your copy of it there");
    assert!(!key.exists());
}

#[test]
fn what_a_running_process_says_of_its_connections_is_repeated() {
    let place = Place::new();
    let settings = "[[carrier]]\nname = \"closed\"\nkind = \"smpp\"\naddress = \"127.0.0.1:1\"\n\
                    system_id = \"a\"\npassword = \"b\"\n";
    fs::write(place.path().join("heliograph.toml"), settings).unwrap();
    let server = TestServer::start(place, &[], &[]);
    until("the state of the connection is stored", || {
        let shown = server.place.json(&["carrier", "show", "closed"]);
        shown["connections"][0]["last_error"].as_str().map(drop)
    });
    let found = Found::of(&server.place, &[]);
    let said = found.is("carrier closed", "fault", "connection 1 of process 0 is ");
    assert!(said.contains("Check host and port of \"address\""), "{said}");
    server.stop();
}

#[test]
fn carriers_and_mail_servers_that_cant_be_reached_are_faults() {
    let (send, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (smsc, _) = Smsc::start_tls().await;
            send.send(smsc.address()).unwrap();
            loop {
                smsc.accept().await;
            }
        });
    });
    let secure = address.recv().unwrap();
    let port = secure.rsplit_once(':').unwrap().1;
    let plain = other_site();
    let place = Place::new();
    let mut settings = String::new();
    for (name, address, tls) in [
        ("unknown", "smsc.invalid:2775", true),
        ("closed", "127.0.0.1:1", false),
        ("plain", &plain, true),
        ("untrusted", &format!("localhost:{port}"), true),
        ("good", &plain, false),
        ("secure", &secure, false),
    ] {
        write!(
            settings,
            "[[carrier]]\nname = \"{name}\"\nkind = \"smpp\"\naddress = \"{address}\"\n\
             tls = {tls}\nsystem_id = \"a\"\npassword = \"b\"\n"
        )
        .unwrap();
    }
    for (name, address) in [("closed-api", "127.0.0.1:1"), ("good-api", &plain)] {
        write!(
            settings,
            "[[carrier]]\nname = \"{name}\"\nkind = \"http\"\n\
             url = \"http://{address}/?to={{number}}&text={{message}}\"\n\
             [[carrier.answer]]\nhttp = 200\noutcome = \"accepted\"\n"
        )
        .unwrap();
    }
    settings.push_str("[[route]]\ncarrier = \"good\"\n");
    let file = place.path().join("heliograph.toml");
    fs::write(&file, &settings).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    place.json(&["migrate"]);
    let mail =
        [("HELIOGRAPH_SMTP_URL", "smtp://127.0.0.1:1"), ("HELIOGRAPH_MAIL_FROM", "a@b.example")];
    let found = Found::of(&place, &mail);
    for (name, words) in [
        ("unknown", "getent hosts NAME"),
        ("closed", "Check host and port of \"address\""),
        ("plain", "Ask the carrier for its TLS port"),
        ("untrusted", "set \"tls_ca\""),
        ("closed-api", "Check host and port of \"url\""),
        ("secure", "Set tls = true"),
    ] {
        found.is(&format!("carrier {name}"), "fault", words);
    }
    found.is("carrier good", "ok", &plain);
    found.is("carrier good-api", "ok", "its host answers; no message was sent");
    found.is("mail", "fault", "Check smtp_url");
    found.is("settings", "ok", "heliograph.toml");
    found.is("files", "warning", "sudo chmod o= ");

    // A fault in the file doesn't keep the doctor from its other checks.
    for (fault, words) in [("[[carrier]]\nname = \"x\"\n", "kind"), ("[[carrier", "line")] {
        fs::write(&file, format!("{settings}{fault}")).unwrap();
        let found = Found::of(&place, &mail);
        found.is("settings", "fault", words);
        found.is("mail", "fault", "Check smtp_url");
    }
    fs::write(&file, format!("{settings}[[carrier]]\nname = \"x\"\n")).unwrap();
    assert!(place.run(&["check"]).status.success());
    assert!(!place.run(&["route", "try", "57000001"]).status.success());
}
