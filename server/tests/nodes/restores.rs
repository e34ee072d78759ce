//! The commands dump a PostgreSQL database and restore it.

use testing::harness::Place;
use testing::postgres::Server;

use crate::database;

#[test]
fn a_dump_is_restored_by_a_command_and_held() {
    let server = Server::start();
    let place = Place::on(&server.url);
    place.json(&["migrate"]);
    assert!(place.json(&["messages", "reconcile"])["held_since"].is_null());
    place.json(&["backup", "dump"]);
    let words = place.refused(&["backup", "dump"]);
    assert!(words.contains("exists already"), "{words}");
    database::execute(&server, &["CREATE DATABASE restored"]);
    let (start, _) = server.url.rsplit_once('/').unwrap();
    let other = Place::on(&format!("{start}/restored"));
    let dump = place.path().join("dump");
    other.json(&["restore", dump.to_str().unwrap()]);
    assert!(other.json(&["messages", "reconcile"])["held_since"].is_string());
    assert_eq!(other.json(&["messages", "reconcile", "--rest", "send"])["ended"], true);
    assert!(other.json(&["messages", "reconcile"])["held_since"].is_null());
    assert!(place.json(&["messages", "reconcile"])["held_since"].is_null());
    // A restore never overwrites tables.
    let words = other.refused(&["restore", dump.to_str().unwrap()]);
    assert!(words.contains("already exists"), "{words}");
}
