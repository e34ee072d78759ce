//! Starts that fail because of PostgreSQL. The exit code is 1, and the message says what to do and
//! contains no password.

use std::process::Output;

use testing::harness::{Place, until};
use testing::postgres::{End, Server};

use crate::database;
use crate::node::Node;

const PASSWORD: &str = "not-the-password-5a1e";

/// The parts of a database URL.
struct Url {
    user: String,
    password: String,
    port: String,
    database: String,
}

impl Url {
    fn of(text: &str) -> Self {
        let rest = text.strip_prefix("postgres://").unwrap();
        let (user, rest) = rest.split_once(':').unwrap();
        let (password, rest) = rest.split_once("@127.0.0.1:").unwrap();
        let (port, database) = rest.split_once('/').unwrap();
        Self {
            user: user.to_owned(),
            password: password.to_owned(),
            port: port.to_owned(),
            database: database.to_owned(),
        }
    }

    fn text(&self) -> String {
        let Self { user, password, port, database } = self;
        format!("postgres://{user}:{password}@127.0.0.1:{port}/{database}")
    }

    /// Checks that a start with this URL fails with this message.
    fn is_refused(&self, words: &str) {
        self.is_refused_by(&[&["serve"], &["migrate"]], words);
    }

    fn is_refused_by(&self, commands: &[&[&str]], words: &str) {
        let place = Place::on(&self.text());
        for arguments in commands {
            let output =
                place.command(arguments).env("HELIOGRAPH_ALLOW_SANDBOX", "true").output().unwrap();
            self.check(arguments, &output, words);
        }
    }

    fn check(&self, arguments: &[&str], output: &Output, words: &str) {
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(said.contains(words), "{arguments:?}: {said}");
        assert!(!said.contains(&self.password), "{arguments:?}: {said}");
        let last = said.trim_end().lines().last().unwrap_or_default();
        assert!(last.starts_with("heliograph: "), "{arguments:?}: {said}");
        println!("{last}");
    }
}

#[test]
fn starts_that_cannot_work_say_what_to_do() {
    let server = Server::start();
    let right = || Url::of(&server.url);

    let elsewhere = Url {
        // No process listens on this port.
        port: "1".to_owned(),
        ..right()
    };
    // A server waits for its database.
    elsewhere.is_refused_by(&[&["migrate"]], "no connection; are host and port right");
    let wrong = Url { password: PASSWORD.to_owned(), ..right() };
    wrong.is_refused("user or password is wrong");
    let missing = Url { database: "missing".to_owned(), ..right() };
    missing.is_refused("there is no such database");

    database::execute(&server, &["CREATE ROLE guest LOGIN PASSWORD 'not-the-password-5a1e'"]);
    let guest = Url { user: "guest".to_owned(), password: PASSWORD.to_owned(), ..right() };
    guest.is_refused("user has no right to do this");

    let place = Place::on(&server.url);
    place.json(&["migrate"]);
    // The schema exists now, but this user has no rights.
    guest.is_refused("user has no right to do this");
    let output = place.run(&["distribute", "--shards", "4"]);
    right().check(&["distribute"], &output, "no extension citus");
    database::execute(
        &server,
        &["INSERT INTO installation \
             (id, currency, created_at, sweep_low_id, swept_at, shards, distribution, form_key) \
             VALUES (1, 'USD', 0, 0, 0, 4, 'begun', '')"],
    );
    let output = place.run(&["check"]);
    right().check(&["check"], &output, "run `heliograph distribute --shards 4`");
    database::execute(
        &server,
        &["INSERT INTO _sqlx_migrations (version, description, success, checksum, \
             execution_time) VALUES (9999, 'later', true, '\\x00', 0)"],
    );
    right().is_refused("newer release");
}

#[test]
fn a_refused_start_uses_up_no_slot_of_a_node() {
    let server = Server::start();
    let place = Place::on(&server.url);
    place.funded("one@example.org", "1");
    // It was sealed with a key file that this place doesn't have.
    database::execute(
        &server,
        &["INSERT INTO second_factors (account_id, secret, created_at, last_step) \
             VALUES (1, 'sealed', 1, 1)"],
    );
    let url = Url::of(&server.url);
    let start = place.command(&["serve"]).env("HELIOGRAPH_ALLOW_SANDBOX", "true").output();
    url.check(&["serve"], &start.unwrap(), "secret.key");
    let taken = "SELECT COUNT(*) FROM nodes WHERE token <> 0";
    assert_eq!(database::number(&server, taken), 0);
    assert_eq!(database::number(&server, "SELECT COUNT(*) FROM nodes"), 1);
}

#[test]
fn a_start_waits_for_a_database_that_is_away() {
    let server = Server::start();
    let place = Place::on(&server.url);
    server.stop(End::Fast);
    let node = Node::new("waiting");
    std::thread::scope(|scope| {
        scope.spawn(|| node.start(&place, &[("HELIOGRAPH_ALLOW_SANDBOX", "true")]));
        until("a line that says so", || {
            let log = std::fs::read_to_string(place.path().join("log-waiting.txt"));
            log.unwrap_or_default().contains("waiting for the database").then_some(())
        });
        server.start_again();
    });
    node.until_ready();
    node.stop();
}
