//! Layers of settings, and starts that are refused.

use std::fs;
use std::process::Output;

use crate::harness::{Place, TestServer};

fn error(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn wrong_settings_are_named() {
    for (name, value, named) in [
        ("HELIOGRAPH_ADRESS", "127.0.0.1:1", "HELIOGRAPH_ADRESS"),
        ("HELIOGRAPH_PRICE_INTERNATIONAL", "0.05", "price_international"),
        ("HELIOGRAPH_PRICE_LOCAL", "-1", "price_local"),
        ("HELIOGRAPH_ADDR", "0.0.0.0:0", "tls_cert"),
        ("HELIOGRAPH_TLS_CERT", "/nowhere.pem", "tls_key"),
        ("HELIOGRAPH_DATABASE_URL", "postgres:/a", "database_url must be of the form"),
        ("HELIOGRAPH_SMTP_URL", "smtp://localhost", "mail_from"),
        ("HELIOGRAPH_CONFIG", "/nowhere.toml", "/nowhere.toml"),
        ("HELIOGRAPH_DATABASE_URL_FILE", "/nowhere", "/nowhere"),
    ] {
        let place = Place::new();
        let output = place.command(&["serve", "--demo"]).env(name, value).output().unwrap();
        assert!(error(&output).contains(named), "{name}={value}: {output:?}");
        assert!(!place.path().join("data").exists(), "{name}: nothing was touched");
    }
}

#[test]
fn a_start_without_carrier_must_be_meant() {
    let place = Place::new();
    assert!(error(&place.run(&["serve"])).contains("ALLOW_SANDBOX"));
    assert!(error(&place.run(&["serve", "--demo", "--role", "web"])).contains("--role"));
    assert_eq!(place.run(&["serve", "--role", "else"]).status.code(), Some(2));
}

#[test]
fn a_carrier_in_the_file_is_enough_to_start() {
    let place = Place::new();
    let file = place.path().join("heliograph.toml");
    fs::write(&file, "[[carrier]]\nname = \"play\"\nkind = \"sandbox\"\n").unwrap();
    let server = TestServer::start(place, &[], &[]);
    let shown = server.place.json(&["config"]);
    assert_eq!(shown["carrier.play.kind"], "sandbox");
}

#[test]
fn layers_win_in_their_order() {
    let place = Place::new();
    let write = |text: &str| fs::write(place.path().join("heliograph.toml"), text).unwrap();
    let currency = |environment: &[(&str, &str)]| {
        let mut command = place.command(&["config", "--json"]);
        command.envs(environment.iter().copied());
        let output = command.output().unwrap();
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        json["currency"].as_str().unwrap().to_owned()
    };
    assert_eq!(currency(&[]), "USD");
    write(
        "currency = \"LSL\"\nprice_local = 0.5\nprice_international = 2\n\
         trusted_proxies = [\"10.0.0.0/8\"]\n",
    );
    assert_eq!(currency(&[]), "LSL");
    assert_eq!(currency(&[("HELIOGRAPH_CURRENCY", "EUR")]), "EUR");
    let output = place
        .command(&["--database-url", "sqlite:flag.db", "config", "--json"])
        .env("HELIOGRAPH_DATABASE_URL", "sqlite:environment.db")
        .output()
        .unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("sqlite:flag.db"));
}

#[test]
fn a_fault_in_the_file_is_named_with_its_line() {
    let place = Place::new();
    for (text, named) in [
        (&b"colour = \"blue\""[..], "line 1: there is no setting colour"),
        (
            b"log = \"info\"\ncurency = 1",
            "line 2: there is no setting curency; did you mean currency?",
        ),
        (
            b"currency = \"USD\"\ncurrency = \"LSL\"",
            "line 2: not valid TOML: currency is set twice",
        ),
        (b"addr = [", "line 1: not valid TOML"),
        (b"log = \"info\"\n\ndatabase_url = \"se", "line 3: not valid TOML"),
        (b"\n[addr]\nx = 1", "line 2: addr must be a plain value"),
        (b"\nlog = 1979-05-27", "line 2: log must be a plain value"),
        (b"\nbehind_proxy = 1", "line 2: behind_proxy must be true or false"),
        (b"\nhistory_days = \"many\"", "line 2: history_days must be a whole number"),
        (b"log = \"info\"\n# \xff", "line 2: not valid UTF-8"),
        (
            b"database_url = \"sqlite:a.db\"\ndatabase_url_file = \"heliograph.toml\"",
            "line 2: database_url is set twice",
        ),
        (b"\n[[route]]\ncarrier = \"acme\"", "line 3, [[route]] 1: carrier"),
        (
            b"[[carrier]]\nname = \"acme\"\nkind = \"smpp\"\nadress = \"h:1\"",
            "line 4, [[carrier]] acme: unknown setting adress; did you mean address?",
        ),
        (
            b"[[carrier]]\nname = \"acme\"\nkind = \"smpp\"\n\nwindow = 0",
            "line 5, [[carrier]] acme: window",
        ),
    ] {
        fs::write(place.path().join("heliograph.toml"), text).unwrap();
        let words = error(&place.run(&["config"]));
        assert!(words.contains("heliograph.toml"), "{words}");
        assert!(words.contains(named), "{named}: {words}");
    }
    for text in ["", "\n# nothing\n"] {
        fs::write(place.path().join("heliograph.toml"), text).unwrap();
        assert_eq!(place.json(&["config"])["currency"], "USD");
    }
}

#[test]
fn a_line_that_cant_be_read_is_not_quoted() {
    let place = Place::new();
    for text in [
        "currency = \"USD\"\ndatabase_url = postgres://u:hidden@h/d\n",
        "currency = \"USD\"\ndatabase_url = \"postgres://u:hidden@h/d\n",
        "currency = \"USD\"\ndatabase_url = \"hidden\" \"hidden\"\n",
        "currency = \"USD\"\nhidden\n",
    ] {
        fs::write(place.path().join("heliograph.toml"), text).unwrap();
        let words = error(&place.run(&["config"]));
        assert!(words.contains("heliograph.toml, line 2: "), "{words}");
        assert!(!words.contains("hidden"), "{words}");
    }
}

#[test]
fn a_secret_may_stand_in_a_file() {
    let place = Place::new();
    fs::write(place.path().join("url"), "sqlite:from-file.db\n").unwrap();
    let output = place
        .command(&["config", "--json"])
        .env("HELIOGRAPH_DATABASE_URL_FILE", "url")
        .output()
        .unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("sqlite:from-file.db"));
}

#[test]
fn the_currency_stays_and_prices_follow_the_start() {
    let environment = [("HELIOGRAPH_ALLOW_SANDBOX", "true")];
    let server = TestServer::start(Place::new(), &[], &environment);
    let keys = server.place.funded("priced@example.org", "10");
    let key = keys.live.expose();
    server.accepted(key, "57000001");
    assert_eq!(server.balance(key), "9.95");
    let (_, place) = server.stop();
    let output = place
        .command(&["serve"])
        .envs(environment)
        .env("HELIOGRAPH_CURRENCY", "EUR")
        .output()
        .unwrap();
    assert!(error(&output).contains("USD"));

    let dearer = [environment[0], ("HELIOGRAPH_PRICE_LOCAL", "0.1")];
    let server = TestServer::start(place, &[], &dearer);
    server.accepted(key, "57000001");
    assert_eq!(server.balance(key), "9.85");
    // A command with other settings doesn't change the prices.
    server.place.json(&["application", "list"]);
    server.accepted(key, "57000001");
    assert_eq!(server.balance(key), "9.75");
    server.place.check();
}

#[test]
fn the_longest_message_is_a_setting() {
    let environment = [("HELIOGRAPH_MESSAGE_PAGES_MAX", "2")];
    let server = TestServer::start(Place::new(), &["--demo"], &environment);
    let longest = "x".repeat(320);
    let pairs = [("number", "57000001"), ("message", longest.as_str())];
    assert_eq!(server.send(server.key(), &pairs).status, 200);
    let longer = "x".repeat(321);
    let pairs = [("number", "57000001"), ("message", longer.as_str())];
    server.send(server.key(), &pairs).is(400, 500, "message_too_long");
}

#[test]
fn the_longest_message_that_can_be_set_can_be_sent() {
    let environment = [("HELIOGRAPH_MESSAGE_PAGES_MAX", "100")];
    let server = TestServer::start(Place::new(), &["--demo"], &environment);
    let number = ("number", "57000001");
    let longest = "\u{1f600}".repeat(16_000);
    let pairs = [number, ("message", &longest)];
    let sent = server.post_form(server.key(), &pairs);
    assert_eq!(sent.status, 200, "{}", sent.text());
    assert_eq!(sent.json()["pages"], 100);
    let escaped = "\\ud83d\\ude00".repeat(16_000);
    let body = format!("{{\"number\":\"57000001\",\"message\":\"{escaped}\"}}");
    let sent = server.post_json(server.key(), body.as_bytes());
    assert_eq!(sent.status, 200, "{}", sent.text());
    let longer = format!("{longest}x");
    let pairs = [number, ("message", &longer)];
    let refused = server.post_form(server.key(), &pairs);
    refused.is(400, 500, "message_too_long");
}

#[test]
fn an_address_in_use_is_named() {
    let server = TestServer::demo();
    let place = Place::new();
    let output = place
        .command(&["serve", "--demo"])
        .env("HELIOGRAPH_ADDR", server.address())
        .output()
        .unwrap();
    assert!(error(&output).contains(server.address()));
}
