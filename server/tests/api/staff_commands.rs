//! Commands for the tasks of the support desk.

use std::fs;

use domain::Category;
use serde_json::{Value, json};

use crate::harness::{Place, TestServer, until};
use crate::ops::kept_waiting;

#[test]
fn accounts_are_added_and_reset() {
    let place = Place::new();
    place.json(&["migrate"]);
    let add = |email: &str, password: &str, more: &[&str]| {
        let mut arguments = vec!["account", "add", email, "--password-stdin", "--json"];
        arguments.extend(more);
        place.run_with_input(&arguments, password.as_bytes())
    };
    let output = add("Staff@Example.org", "long enough password\n", &["--staff"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["email"], &json["staff"]), (&"staff@example.org".into(), &true.into()));
    assert_eq!(add("staff@example.org", "long enough password\n", &[]).status.code(), Some(1));
    assert_eq!(add("other@example.org", "short\n", &[]).status.code(), Some(1));
    assert_eq!(add("other@example.org", "", &[]).status.code(), Some(1));

    let arguments = ["account", "add", "other@example.org", "--password-stdin"];
    let output = place.run_with_input(&arguments, b"long enough \xff password\n");
    assert_eq!(output.status.code(), Some(1));
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("password isn't valid UTF-8"), "{words}");

    let reset = place.json(&["account", "reset", "staff@example.org"]);
    let link = reset["link"].as_str().unwrap();
    let (_, token) = link.split_once("/reset/").unwrap();
    place.with_service(async |service| {
        let new = domain::Password::parse("an even longer password").unwrap();
        service.accounts().reset_password(token, &new).await.unwrap();
        assert!(service.accounts().reset_password(token, &new).await.is_err());
        service.accounts().sign_in("staff@example.org", new.expose(), "test").await.unwrap();
    });
    place.refused(&["account", "reset", "nobody@example.org"]);
}

#[test]
fn staff_disable_and_promote_accounts() {
    let place = Place::new();
    let keys = place.funded("a@example.org", "1");
    let list = place.json(&["account", "list"]);
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(list[0]["email"], "a@example.org");
    let shown = place.json(&["account", "show", "A@example.org"]);
    assert_eq!(shown["applications"], json!([keys.reference.to_string()]));
    assert_eq!(shown["second_factor_since"], Value::Null);
    assert_eq!(shown["devices"], 0);

    let disable = ["account", "disable", "a@example.org"];
    assert_eq!(place.run(&disable).status.code(), Some(2), "a reason is needed");
    place.refused(&[disable.as_slice(), &["--reason", " "]].concat());
    let disabled = place.json(&[disable.as_slice(), &["--reason", "unpaid"]].concat());
    assert_eq!(disabled["disabled_reason"], "unpaid");
    assert!(disabled["disabled_at"].is_string());
    let reference = keys.reference.to_string();
    let status = place.json(&["application", "show", &reference])["status"].clone();
    assert_eq!(status, "Active", "the application keeps its status");
    place.refused(&[disable.as_slice(), &["--reason", "again"]].concat());
    let text = place.run(&["account", "show", "a@example.org"]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("unpaid"));
    let enabled = place.json(&["account", "enable", "a@example.org"]);
    assert_eq!(enabled["disabled_at"], Value::Null);
    place.refused(&["account", "enable", "a@example.org"]);

    let promoted = place.json(&["account", "promote", "a@example.org"]);
    assert_eq!(promoted["staff"], true);
    for last in ["demote", "disable"] {
        let mut arguments = vec!["account", last, "a@example.org"];
        arguments.extend((last == "disable").then_some("--reason"));
        arguments.extend((last == "disable").then_some("why"));
        let words = place.refused(&arguments);
        assert!(words.contains("last member of staff"), "{words}");
    }
    place.application("b@example.org", Category::Electricity, None);
    place.json(&["account", "promote", "b@example.org"]);
    let demoted = place.json(&["account", "demote", "a@example.org"]);
    assert_eq!(demoted["staff"], false);
    place.refused(&["account", "demote", "a@example.org"]);
    place.refused(&["account", "reset-factor", "a@example.org"]);
    place.json(&["account", "sign-out", "a@example.org"]);
    place.refused(&["account", "show", "nobody@example.org"]);
}

#[test]
fn applications_go_through_their_states() {
    let place = Place::new();
    let keys = place.application("a@example.org", Category::Sms, Some("Acme"));
    let reference = keys.reference.to_string();
    let status = |arguments: &[&str]| place.json(arguments)["status"].as_str().unwrap().to_owned();
    let refuse = |arguments: &[&str]| place.refused(arguments);
    assert_eq!(status(&["application", "show", &reference]), "Pending");
    refuse(&["application", "reinstate", &reference]);
    let suspend = ["application", "suspend", reference.as_str(), "--reason", "unpaid"];
    // An application that was Pending before its suspension is Pending again.
    assert_eq!(status(&suspend), "Suspended");
    refuse(&suspend);
    refuse(&["application", "approve", &reference]);
    assert_eq!(place.json(&["application", "show", &reference])["suspend_reason"], "unpaid");
    assert_eq!(status(&["application", "reinstate", &reference]), "Pending");
    assert_eq!(status(&["application", "approve", &reference]), "Active");
    refuse(&["application", "approve", &reference]);
    assert_eq!(status(&suspend), "Suspended");
    assert_eq!(status(&["application", "reinstate", &reference]), "Active");
    refuse(&["application", "suspend", &reference, "--reason", " "]);
    refuse(&["application", "show", if reference == "000000" { "000001" } else { "000000" }]);

    let list = place.json(&["application", "list"]);
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(list[0]["reference"], *reference);
    assert_eq!(list[0]["balance"].to_string(), "0");
    let human = String::from_utf8(place.run(&["application", "list"]).stdout).unwrap();
    assert!(human.contains(&reference) && human.contains("Active"), "{human}");
    place.check();
}

#[test]
fn sender_names_are_decided_once() {
    let place = Place::new();
    place.application("a@example.org", Category::Sms, Some("Acme"));
    let other = place.application("b@example.org", Category::Sms, Some("ACME"));
    let list = place.json(&["sender", "list"]);
    assert_eq!(list.as_array().unwrap().len(), 2);
    let id = |name: &str| {
        let found = list.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
        found["id"].to_string()
    };
    assert_eq!(place.json(&["sender", "accept", &id("Acme")])["status"], "accepted");
    place.refused(&["sender", "accept", &id("Acme")]);
    place.refused(&["sender", "reject", &id("Acme"), "--reason", "late"]);
    // The name belongs to another account, whatever its case.
    place.refused(&["sender", "accept", &id("ACME")]);
    place.refused(&["sender", "reject", &id("ACME"), "--reason", ""]);
    let rejected = place.json(&["sender", "reject", &id("ACME"), "--reason", "taken"]);
    assert_eq!((&rejected["status"], &rejected["reason"]), (&"rejected".into(), &"taken".into()));
    place.refused(&["sender", "accept", "999"]);
    assert_eq!(place.json(&["sender", "list"]).as_array().unwrap().len(), 0);
    let shown = place.json(&["application", "show", &other.reference.to_string()]);
    assert_eq!(shown["requested_sender"]["reason"], "taken");
}

#[test]
fn a_bank_id_is_credited_once() {
    let place = Place::new();
    let keys = place.application("a@example.org", Category::Sms, None);
    let reference = keys.reference.to_string();
    let unknown = if reference == "000000" { "000001" } else { "000000" };
    let add = ["deposit", "add", reference.as_str(), "12.5", "--bank-id", "b1"];
    let first = place.json(&add);
    assert_eq!((&first["status"], &first["already"]), (&"credited".into(), &false.into()));
    assert_eq!(first["balance"].to_string(), "12.5");
    let again = place.json(&add);
    assert_eq!((&again["status"], &again["already"]), (&"credited".into(), &true.into()));
    place.refused(&["deposit", "add", &reference, "12.51", "--bank-id", "b1"]);
    place.refused(&["deposit", "add", unknown, "12.5", "--bank-id", "b1"]);

    for empty in ["", " "] {
        let words = place.refused(&["deposit", "add", empty, "1", "--bank-id", "b2"]);
        assert!(words.contains("reference"), "{words}");
        let words = place.refused(&["deposit", "add", &reference, "1", "--bank-id", empty]);
        assert!(words.contains("bank_id"), "{words}");
    }

    let waiting = place.json(&["deposit", "add", unknown, "3", "--bank-id", "b2"]);
    assert_eq!(waiting["status"], "unmatched");
    let reference_of_b3 = "no\u{1b}[2J\n\u{202e}reference";
    let odd = place.json(&["deposit", "add", reference_of_b3, "4", "--bank-id", "b3"]);
    assert_eq!(odd["status"], "unmatched");
    assert_eq!(place.json(&["deposit", "unmatched"]).as_array().unwrap().len(), 2);
    // Control characters in a payer's reference don't reach the terminal.
    let table = place.run(&["deposit", "unmatched"]).stdout;
    let table = String::from_utf8(table).unwrap();
    let shown = r"no\u{1b}[2J\u{a}\u{202e}reference";
    assert!(table.contains(shown), "{table}");
    place.check();
    place.json(&["deposit", "assign", "b2", &reference]);
    place.refused(&["deposit", "assign", "b2", &reference]);
    place.refused(&["deposit", "assign", "b9", &reference]);
    place.refused(&["deposit", "assign", "b3", unknown]);
    // An assigned deposit keeps its bank ID, so it isn't credited again.
    assert_eq!(place.json(&["deposit", "add", unknown, "3", "--bank-id", "b2"])["already"], true);
    let shown = place.json(&["application", "show", &reference]);
    assert_eq!(shown["balance"].to_string(), "15.5");
    place.check();
}

#[test]
fn a_file_of_deposits_is_taken_whole_or_not() {
    let place = Place::new();
    let keys = place.application("a@example.org", Category::Sms, None);
    let reference = keys.reference.to_string();
    let unknown = if reference == "000000" { "000001" } else { "000000" };
    let write = |text: &str| fs::write(place.path().join("bank.csv"), text).unwrap();
    let header = "bank_id,reference,amount\n";
    let good = format!("{header}c1,{reference},1\nc2,{unknown},2\n\"c,3\",{reference},0.000001\n");
    for (text, named) in [
        (String::new(), "header"),
        (header.to_owned(), "empty"),
        (format!("bank,reference,amount\nc1,{reference},1\n"), "bank,reference,amount"),
        (format!("{good}c4,{reference}\n"), "line 5"),
        (format!("{good}c4,{reference},1,2\n"), "line 5"),
        (format!("{good}c4,{reference},0\n"), "line 5"),
        (format!("{good}c4,{reference},-1\n"), "line 5"),
        (format!("{good}c4,{reference},\"1,5\"\n"), "line 5"),
        (format!("{good}c4,{reference},1.1234567\n"), "line 5"),
        (format!("{good},{reference},1\n"), "line 5"),
        (format!("{good}c4,,1\n"), "line 5"),
        (format!("{good}c4, ,1\n"), "line 5"),
        // Blank lines are skipped but counted.
        (format!("{good}\n\nc4,x,one\n"), "line 7"),
        (format!("{good}\r\n \r\nc4,x,one\r\n"), "line 7"),
        (format!("{good}\n\nc4,x,one"), "line 7"),
        (format!("\u{feff}\n{good}c4\n"), "line 6"),
        (format!("\n{good}\"c\n4\",{reference},1\nc5\n"), "line 8"),
        // Conflicts are named too.
        (format!("{good}\nc1,{reference},9\n"), "line 6"),
    ] {
        write(&text);
        let words = place.refused(&["deposit", "import", "bank.csv"]);
        assert!(words.contains(named), "{text:?}: {words}");
    }
    fs::write(place.path().join("bank.csv"), b"bank_id,reference,amount\nc1,\xff,1\n").unwrap();
    assert!(place.refused(&["deposit", "import", "bank.csv"]).contains("line 2"));
    place.refused(&["deposit", "import", "missing.csv"]);
    assert_eq!(place.json(&["application", "show", &reference])["balance"].to_string(), "0");

    write(&good.replace('\n', " \r\n\r\n").replace(',', " , ").replace("\"c , 3\"", "\"c,3\""));
    let done = place.json(&["deposit", "import", "bank.csv"]);
    let counts = |done: &Value| {
        ["credited", "unmatched", "skipped"].map(|name| done[name].as_u64().unwrap())
    };
    assert_eq!(counts(&done), [2, 1, 0]);
    write(&format!("\u{feff}{good}c5,{reference},5\n"));
    assert_eq!(counts(&place.json(&["deposit", "import", "bank.csv"])), [1, 0, 3]);
    // A known bank ID with other data refuses the file.
    write(&format!("{header}c6,{reference},1\nc1,{reference},9\n"));
    let words = place.refused(&["deposit", "import", "bank.csv"]);
    assert!(words.contains("line 3") && words.contains("c1"), "{words}");
    let shown = place.json(&["application", "show", &reference]);
    assert_eq!(shown["balance"].to_string(), "6.000001");
    // A balance that would be too large shows only while the lines are credited.
    write(&format!("{header}c7,{reference},9000000000000\nc8,{reference},9000000000000\n"));
    let words = place.refused(&["deposit", "import", "bank.csv"]);
    assert!(words.contains("line 3") && words.contains("the other lines are credited"), "{words}");
    // In a bank's own format, what isn't a payment to us is skipped.
    write(&format!("id;details;sum\nc9;x;-1\nc1;{reference};1\n"));
    assert_eq!(counts(&place.json(&["deposit", "import", "bank.csv"])), [0, 0, 2]);
    place.check();
}

#[test]
fn carriers_are_listed_drained_and_resumed_beside_the_server() {
    let server = TestServer::demo();
    let (place, key) = (&server.place, server.key());
    let words = |arguments: &[&str]| {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let list = || place.json(&["carrier", "list"])[0].clone();
    let sandbox =
        until("the sandbox to be up", || Some(list()).filter(|carrier| carrier["state"] == "up"));
    assert_eq!(sandbox["name"], "sandbox");
    assert_eq!(sandbox["connections"][0]["state"], "bound");
    let table = words(&["carrier", "list"]);
    assert!(table.contains("sandbox") && table.contains("bound"), "{table}");

    let refusal = place.refused(&["carrier", "drain", "sandbox"]);
    assert!(refusal.contains("No other carrier") && refusal.contains("--yes"), "{refusal}");
    assert_eq!(list()["state"], "up");
    let drained = place.json(&["carrier", "drain", "sandbox", "--yes"]);
    assert_eq!(drained.to_string(), r#"{"changed":true,"drained":true,"name":"sandbox"}"#);
    assert_eq!(list()["state"], "drained");
    assert!(words(&["carrier", "drain", "sandbox"]).contains("already drained"));
    assert_eq!(place.json(&["carrier", "drain", "sandbox"])["changed"], false);
    let waits = kept_waiting(&server, "sandbox");
    assert_eq!(server.report(key, &waits)["status"], "queued");
    assert!(list()["oldest_waiting_at"].is_string());

    let resumed = words(&["carrier", "resume", "sandbox"]);
    assert!(resumed.contains("resumed"), "{resumed}");
    assert_eq!(server.final_report(key, &waits)["status"], "delivered");
    assert_eq!(place.json(&["carrier", "resume", "sandbox"])["changed"], false);

    let words = place.refused(&["carrier", "drain", "nobody"]);
    assert!(words.contains("no carrier with this name"), "{words}");
    place.refused(&["carrier", "resume", "nobody"]);
}

#[test]
fn notes_about_incidents_are_opened_and_ended() {
    let place = Place::new();
    place.json(&["migrate"]);
    let open = |text: &str| place.json(&["incident", "open", "--text", text]);
    let first = open(" Delivery is slow ");
    assert_eq!((&first["text"], &first["carrier"]), (&"Delivery is slow".into(), &Value::Null));
    let of_sandbox = ["incident", "open", "--text", "a", "--carrier", "sandbox"];
    assert_eq!(place.json(&of_sandbox)["carrier"], "sandbox");
    place.refused(&["incident", "open", "--text", " "]);
    place.refused(&["incident", "open", "--text", &"a".repeat(301)]);
    place.refused(&["incident", "open", "--text", "a\u{1b}b"]);
    let of_nobody = ["incident", "open", "--text", "a", "--carrier", "nobody"];
    assert!(place.refused(&of_nobody).contains("no carrier with this name"));
    let id = first["id"].to_string();
    assert_eq!(place.json(&["incident", "end", &id])["id"], first["id"]);
    place.refused(&["incident", "end", &id]);
    let list = place.json(&["incident", "list"]);
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(list[0]["text"], "a");
}

#[test]
fn lists_of_staff_are_shown_and_replaced() {
    let place = Place::new();
    place.json(&["migrate"]);
    let show = || place.json(&["staff-list", "show", "reserved-words"]);
    assert_eq!(show()["entries"], json!(["admin", "bank", "police", "support"]));
    fs::write(place.path().join("words"), "bank\r\n\r\n treasury \n").unwrap();
    let set = ["staff-list", "set", "reserved-words", "--file", "words"];
    assert_eq!(place.json(&set)["entries"], json!(["bank", "treasury"]));
    let text = place.run(&["staff-list", "show", "reserved-words"]).stdout;
    assert_eq!(String::from_utf8(text).unwrap(), "bank\ntreasury\n");
    fs::write(place.path().join("words"), "a\n".repeat(101)).unwrap();
    assert!(place.refused(&set).contains("at most 100 lines"));
    let missing = ["staff-list", "set", "reserved-words", "--file", "missing"];
    assert!(place.refused(&missing).contains("can't read missing"));
    assert_eq!(show()["entries"], json!(["bank", "treasury"]));
}

#[test]
fn a_message_is_found_and_shown_with_its_text_only_when_asked_for() {
    let server = TestServer::demo();
    let (place, key) = (&server.place, server.key());
    let pairs = [("number", "00000002"), ("message", "The text of it")];
    let sent = server.send(key, &pairs).json();
    let transid = sent["transid"].as_str().unwrap();
    server.final_report(key, transid);
    let reference = &key[..6];

    let found = place.json(&["search", transid]);
    assert_eq!(found["messages"][0]["transid"], transid, "{found}");
    assert_eq!(found["messages"][0]["characters"], 14);
    assert_eq!(found["messages"][0]["reference"], reference);
    assert!(!found.to_string().contains("The text"), "{found}");
    let by_number = place.json(&["search", "00000002"]);
    assert_eq!(by_number["messages"], found["messages"]);
    let within = place.json(&["search", &format!("{reference} 00000002")]);
    assert_eq!(within["messages"], found["messages"]);
    let application = place.json(&["search", reference]);
    assert_eq!(application["applications"][0]["status"], "Active");
    let email = application["applications"][0]["account"].as_str().unwrap();
    assert_eq!(place.json(&["search", email])["accounts"][0]["email"], email);
    let nothing = place.run(&["search", "nobody@example.org"]);
    assert_eq!(nothing.stdout, b"Nothing was found.\n");

    let shown = place.json(&["message", "show", transid]);
    assert_eq!((&shown["message"], &shown["status"]), (&"".into(), &"failed".into()));
    assert_eq!(shown["charge"]["charged"], 0.05);
    assert_eq!(shown["timeline"][0]["status"], "queued");
    let words = place.run(&["message", "show", transid, "--text"]).stdout;
    let words = String::from_utf8(words).unwrap();
    assert!(words.contains("The text of it") && words.contains("sandbox"), "{words}");
    let entries = place.json(&["audit", "list", "--subject", transid]);
    assert_eq!(entries.as_array().unwrap().len(), 1, "only the text is recorded");
    assert_eq!(entries[0]["action"], "message.text");
    place.refused(&["message", "show", "m_0000000000000"]);
    assert_eq!(place.run(&["message", "show", "x"]).status.code(), Some(2));
}

#[test]
fn notes_and_the_audit_log_are_on_the_command_line() {
    let place = Place::new();
    place.json(&["migrate"]);
    let add = ["account", "add", "a@example.org", "--password-stdin"];
    place.run_with_input(&add, b"long enough password\n");
    let note = place.json(&["account", "note", "A@example.org", "--text", "Called."]);
    assert_eq!(note["text"], "Called.");
    let shown = place.json(&["account", "show", "a@example.org"]);
    assert_eq!(shown["notes"][0]["text"], "Called.");
    let text = place.run(&["account", "show", "a@example.org"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("Called."), "{text}");
    let missing = ["account", "note", "nobody@example.org", "--text", "x"];
    let words = place.refused(&missing);
    assert!(words.contains("There is no account with this email."), "{words}");
    place.refused(&["account", "note", "a@example.org", "--text", " "]);

    let entries = place.json(&["audit", "list", "--subject", "a@example.org"]);
    let actions: Vec<_> = entries.as_array().unwrap().iter().collect();
    assert_eq!(actions.len(), 2, "{entries}");
    assert_eq!(
        (&entries[0]["action"], &entries[1]["action"]),
        (&"account.note".into(), &"account.add".into())
    );
    let who = entries[0]["who"].as_str().unwrap();
    assert!(who.starts_with("command line ("), "{who}");
    assert_eq!(entries[0]["address"], Value::Null);
    let later = place.json(&["audit", "list", "--from", "2100-01-01"]);
    assert_eq!(later, json!([]));
    let output = place.run(&["audit", "list", "--from", "yesterday"]);
    assert_eq!(output.status.code(), Some(2));
}
