//! Backups that are encrypted for a key.

use std::path::Path;

use age::secrecy::ExposeSecret as _;
use age::x25519::Identity;
use testing::harness::Place;
use testing::postgres::Server;

use crate::database;

/// An upload that isn't messages yet.
const SPOOL: &str = "data/spool/00112233445566778899aabbccddeeff.rows";
const EMAIL: &str = "encrypted@example.org";

#[test]
fn only_the_key_opens_an_encrypted_backup_of_sqlite() {
    let place = Place::new();
    place.funded(EMAIL, "10");
    std::fs::create_dir_all(place.path().join("data/spool")).unwrap();
    std::fs::write(place.path().join(SPOOL), "rows").unwrap();
    let restored = Place::new();
    let key = back_up(&place, restored.path());
    assert_only_the_key_opens(&restored, &key);
    assert_eq!(std::fs::read_to_string(restored.path().join(SPOOL)).unwrap(), "rows");
    // Neither the backup nor the restore leaves a copy that isn't encrypted.
    for folder in [place.path().join("data"), restored.path().join("data")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(name.starts_with("heliograph.db") || name.starts_with("spool"), "{name}");
        }
    }
}

#[test]
fn only_the_key_opens_an_encrypted_backup_of_postgres() {
    let server = Server::start();
    let place = Place::on(&server.url);
    place.funded(EMAIL, "10");
    database::execute(&server, &["CREATE DATABASE restored"]);
    let restored = Place::on(&format!("{}/restored", server.url.rsplit_once('/').unwrap().0));
    let key = back_up(&place, restored.path());
    assert_only_the_key_opens(&restored, &key);
}

/// Makes an encrypted backup, and another one for two keys. Puts them into a folder. Returns the
/// key.
fn back_up(place: &Place, folder: &Path) -> Identity {
    let (key, other) = (Identity::generate(), Identity::generate());
    let recipient = key.to_public().to_string();
    let words = place.refused(&["backup", "backup", "--recipient", "age1nobody"]);
    assert!(words.contains("age1nobody isn't a recipient"), "{words}");
    place.json(&["backup", "backup", "--recipient", &recipient]);
    let first = std::fs::read(place.path().join("backup")).unwrap();
    let words = place.refused(&["backup", "backup", "--recipient", &recipient]);
    assert!(words.contains("exists already"), "{words}");
    assert!(std::fs::read(place.path().join("backup")).unwrap() == first);
    let listed = format!("# both\n{recipient}\n{}\n", other.to_public());
    std::fs::write(place.path().join("recipients"), listed).unwrap();
    place.json(&["backup", "for-two", "--recipients-file", "recipients"]);
    for name in ["backup", "for-two"] {
        std::fs::rename(place.path().join(name), folder.join(name)).unwrap();
    }
    key
}

/// Tries to restore what can't be restored, and then the backup. What was refused leaves nothing,
/// because a restore overwrites nothing.
fn assert_only_the_key_opens(place: &Place, key: &Identity) {
    let file = |name: &str| place.path().join(name);
    let keys = |key: &Identity| format!("# a key\n{}\n", key.to_string().expose_secret());
    std::fs::write(file("key"), keys(key)).unwrap();
    std::fs::write(file("other-key"), keys(&Identity::generate())).unwrap();
    let whole = std::fs::read(file("backup")).unwrap();
    assert!(whole.starts_with(b"age-encryption.org/v1\n") && whole.len() > 0x10000);
    assert!(!whole.windows(EMAIL.len()).any(|bytes| bytes == EMAIL.as_bytes()));
    let changed = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let header = whole.windows(4).position(|bytes| bytes == b"\n---").unwrap() + 1;
    // In the header's checksum, in the first chunk, and in the last one.
    std::fs::write(file("header"), changed(header + 10)).unwrap();
    std::fs::write(file("first"), changed(1000)).unwrap();
    std::fs::write(file("last"), changed(whole.len() - 1)).unwrap();
    std::fs::write(file("cut"), &whole[..whole.len() - 1]).unwrap();
    std::fs::write(file("cut-header"), &whole[..100]).unwrap();
    // The end of a chunk: the header, a nonce of 16 bytes, and a chunk with its tag.
    let payload = header + whole[header..].iter().position(|byte| *byte == b'\n').unwrap() + 1;
    std::fs::write(file("chunk"), &whole[..payload + 16 + 0x10000 + 16]).unwrap();
    for (name, identity, expected) in [
        ("backup", None, "name the file of its key with --identity"),
        ("backup", Some("other-key"), "no key in other-key opens it"),
        ("backup", Some("missing"), "missing: "),
        ("key", Some("key"), "it isn't encrypted"),
        ("header", Some("key"), "cut off, or was changed"),
        ("first", Some("key"), "cut off, or was changed"),
        ("last", Some("key"), "cut off, or was changed"),
        ("cut", Some("key"), "cut off, or was changed"),
        ("cut-header", Some("key"), "cut off, or was changed"),
        ("chunk", Some("key"), "cut off, or was changed"),
    ] {
        let identity = identity.map(|file| ["--identity", file]);
        let arguments: Vec<&str> =
            ["restore", name].into_iter().chain(identity.into_iter().flatten()).collect();
        let words = place.refused(&arguments);
        assert!(words.contains(expected), "{name}: {words}");
    }
    place.json(&["restore", "for-two", "--identity", "key"]);
    place.check();
    assert!(place.json(&["messages", "reconcile"])["held_since"].is_string());
    assert!(place.json(&["search", EMAIL]).to_string().contains(EMAIL));
}
