//! Prices: `/sms/prices`, the command line, and starts after the prices in the settings changed.

use serde_json::Value;

use crate::harness::{Place, TestServer};

fn prices(server: &TestServer, query: &str) -> Value {
    let answer = server.get(&format!("/sms/prices/{}{query}", server.key()));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn refused(place: &Place, arguments: &[&str]) -> String {
    let output = place.run(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn prices_are_listed_and_a_number_has_its_price() {
    let server = TestServer::demo();
    let listed = prices(&server, "");
    assert!(listed.get("price").is_none());
    let first = &listed["prices"][0];
    assert_eq!(
        (&first["prefix"], &first["kind"], first["per_page"].to_string().as_str()),
        (&Value::Null, &"local".into(), "0.05")
    );
    assert_eq!(first["currency"], "USD");
    assert!(first["from"].as_str().unwrap().ends_with('Z'));
    let place = &server.place;
    place.json(&["price", "set-prefix", "+27", "0.12"]);
    place.json(&["price", "set-prefix", "44", "0.3", "--from", "2999-01-01"]);
    let listed = prices(&server, "?number=27821234567");
    assert_eq!(listed["price"]["per_page"].to_string(), "0.12");
    assert_eq!(listed["price"]["rule"], "prefix_27");
    let listed = listed["prices"].as_array().unwrap();
    assert_eq!(listed.len(), 4);
    assert_eq!((&listed[2]["prefix"], &listed[3]["prefix"]), (&"27".into(), &"44".into()));
    assert_eq!(listed[3]["from"], "2999-01-01T00:00:00.000Z");
    let local = prices(&server, "?number=57000001");
    assert_eq!(local["price"]["rule"], "local_8_digits");
    let key = server.key();
    server.get(&format!("/sms/prices/{key}?number=x")).is(400, 500, "invalid_number");
    server.get(&format!("/sms/prices/{key}?prefix=27")).is(400, 500, "invalid_parameter");
    server.get("/sms/prices/wrong").is(401, 504, "api_invalid");
    // The running server charges the price that the command line set.
    let sent = server.send(key, &[("number", "27821234567"), ("message", "x")]);
    assert_eq!(sent.json()["cost"].to_string(), "0.12");
    let report = server.report(key, sent.json()["transid"].as_str().unwrap());
    assert_eq!(report["charge"]["rule"], "prefix_27");
    let (_, place) = server.stop();
    place.check();
}

#[test]
fn prices_are_set_by_command_and_then_no_more_by_settings() {
    let place = Place::new();
    place.application("a@example.org", domain::Category::Sms, None);
    let list = place.json(&["price", "list"]);
    assert_eq!(list.as_array().unwrap().len(), 2);
    place.json(&["price", "set", "0.04", "0.2"]);
    let of = place.json(&["price", "of", "57000001"]);
    assert_eq!((of["per_page"].to_string().as_str(), &of["currency"]), ("0.04", &"USD".into()));
    assert_eq!(of["rule"], "local_8_digits");
    assert!(of["why"].as_str().unwrap().contains("local"));
    let set = place.json(&["price", "set-prefix", "27", "0.1", "--from", "2999-01-01T00:00:00Z"]);
    assert_eq!(set["from"], "2999-01-01T00:00:00.000Z");
    let words = refused(&place, &["price", "set", "0.1", "0.2"]);
    assert!(words.contains("prefix 27") && words.contains("2999-01-01"), "{words}");
    for arguments in [
        &["price", "set", "0.2", "0.2"] as &[&str],
        &["price", "set", "0", "0.2"],
        &["price", "set-prefix", "27", "0.3", "--from", "2999-01-01"],
        &["price", "set-prefix", "44", "0.3", "--from", "2020-01-01"],
        &["price", "remove-prefix", "27"],
    ] {
        refused(&place, arguments);
    }
    for arguments in [
        &["price", "set-prefix", "x", "0.3"] as &[&str],
        &["price", "set-prefix", "44", "0.1234567"],
        &["price", "of", "12"],
        &["price", "set", "0.04", "0.2", "--from", "soon"],
    ] {
        assert_eq!(place.run(arguments).status.code(), Some(2), "{arguments:?}");
    }
    let removal = ["price", "remove-prefix", "27", "--from", "2999-02-01"];
    assert_eq!(place.json(&removal)["from"], "2999-02-01T00:00:00.000Z");
    let human = String::from_utf8(place.run(&["price", "list"]).stdout).unwrap();
    assert!(human.contains("0.04 USD") && human.contains("removed"), "{human}");
    let settings = [("HELIOGRAPH_PRICE_LOCAL", "0.09"), ("HELIOGRAPH_ALLOW_SANDBOX", "true")];
    let server = TestServer::start(place, &[], &settings);
    assert!(server.log().contains("the prices in the settings change nothing"));
    let (_, place) = server.stop();
    let of = place.json(&["price", "of", "57000001"]);
    assert_eq!(of["per_page"].to_string(), "0.04");
    place.check();
}

#[test]
fn margins_are_printed_for_days_that_are_over() {
    let server = TestServer::demo();
    let key = server.key();
    // "Ж" isn't in GSM-7, so 160 of them are one page and three segments.
    let text = "Ж".repeat(160);
    let sent = server.send(key, &[("number", "57000001"), ("message", &text)]);
    let report = server.final_report(key, sent.json()["transid"].as_str().unwrap());
    assert_eq!((&report["pages"], &report["segments"]), (&1.into(), &3.into()));
    let (_, place) = server.stop();
    // Today isn't over, so it isn't listed.
    let days = ["margin", "--from", "2026-01-01", "--to", "2026-03-31"];
    assert_eq!(place.json(&days), Value::Array(Vec::new()));
    let human = String::from_utf8(place.run(&days).stdout).unwrap();
    assert!(human.starts_with("DAY"), "{human}");
    let words = refused(&place, &["margin", "--from", "2026-01-01", "--to", "2026-04-03"]);
    assert!(words.contains("92 days"), "{words}");
    let wrong = place.run(&["margin", "--from", "January", "--to", "2026-04-03"]);
    assert_eq!(wrong.status.code(), Some(2));
}
