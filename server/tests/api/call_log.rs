//! The last calls of an application, which its owner sees on its quick start page.

use domain::reason::Reason;

use crate::client::bare;
use crate::harness::{TestServer, until};
use crate::portal::{Browser, PASSWORD, location};

/// Returns the text of each cell, row by row as on the page.
fn rows(page: &str) -> Vec<Vec<String>> {
    let (_, table) = page.split_once("aria-label=\"Last API calls\"").unwrap();
    let (table, _) = table.split_once("</table>").unwrap();
    let (_, body) = table.split_once("<tbody>").unwrap();
    let cell = |cell: &str| {
        let mut text = String::new();
        let mut is_tag = false;
        for c in cell.split_once('>').unwrap().1.chars() {
            match c {
                '<' => is_tag = true,
                '>' => is_tag = false,
                c if !is_tag => text.push(c),
                _ => {}
            }
        }
        text.trim().to_owned()
    };
    let row = |row: &str| row.split("<td").skip(1).map(cell).collect();
    body.split("<tr>").skip(1).map(row).collect()
}

/// Makes a successful call and refused ones. The last one uses a key that was replaced.
fn make_calls(server: &TestServer, browser: &mut Browser<'_>, reference: &str, keys: &[String; 2]) {
    let [live, test] = keys;
    let good = [("number", "58001987"), ("message", "Hello")];
    server.send(test, &good).is(200, 200, "");
    server.send(live, &good).is(403, 502, "api_pending");
    let bad = server.post_form(test, &[("number", "58x"), ("message", "Hello")]);
    bad.is(400, 500, "invalid_number");
    let without = server.post_form(test, &[("number", "+4915112345678")]);
    without.is(400, 500, "missing_parameter");
    let upload = server.upload(test, &[("bulksms", b"58001987,Hello\nnonsense\n")]);
    upload.is(400, 500, "invalid_file");
    let deleted = server.exchange(&bare("DELETE", &format!("/sms/balance/{live}"), &[]));
    deleted.is(405, 500, "method_not_allowed");
    // A key that doesn't exist.
    let last = if test.ends_with('x') { 'y' } else { 'x' };
    let forged = format!("{}{last}", &test[..test.len() - 1]);
    server.send(&forged, &good).is(401, 504, "api_invalid");
    let fields = [("reference", reference), ("kind", "test"), ("password", PASSWORD)];
    let replaced = browser.post("replace-key", &fields);
    assert!(location(&replaced).ends_with("/keys"), "{replaced:?}");
    server.send(test, &good).is(401, 504, "api_invalid");
}

#[test]
fn good_and_bad_calls_are_shown_to_their_owner() {
    let server = TestServer::empty();
    let mut browser = Browser::registered(&server, "calls@example.org");
    let made = browser.post("create-application", &[("category", "SMS"), ("sender", "")]);
    let target = location(&made).to_owned();
    let first = browser.get(&target).text();
    let reference = target.rsplit('/').next().unwrap();
    let keys = ["hk_", "ht_"].map(|prefix| {
        let beginning = format!("{reference}{prefix}");
        let (_, rest) = first.split_once(&format!("value=\"{beginning}")).unwrap();
        format!("{beginning}{}", rest.split('"').next().unwrap())
    });
    let start = format!("{target}/start");
    let empty = browser.get(&start).text();
    assert!(empty.contains("No call was made yet."), "{empty}");

    make_calls(&server, &mut browser, reference, &keys);
    let page = until("the calls are shown", || {
        let page = browser.get(&start).text();
        (page.contains("Last API calls\"") && rows(&page).len() >= 7).then_some(page)
    });
    for key in &keys {
        assert!(!page.contains(key.as_str()), "{page}");
    }
    let shown = rows(&page);
    assert_eq!(shown.len(), 7, "{shown:#?}");
    // Call, key, recipient, answer. The time comes before them, and the address follows the key.
    let (get, post, to) = ("GET /sms/send/…", "POST /sms/send/…", "•••••987");
    let abroad = "••••••••••678";
    let [api_key, test_key] = ["API key", "Test key"];
    for (row, expected) in shown.iter().zip([
        [get, "Replaced test key", to, "HTTP 401, code 504, api_invalid"],
        ["DELETE /sms/balance/…", api_key, "", "HTTP 405, code 500, method_not_allowed"],
        ["POST /sms/bulk/…", test_key, "", "HTTP 400, code 500, invalid_file"],
        [post, test_key, abroad, "HTTP 400, code 500, missing_parameter"],
        [post, test_key, "", "HTTP 400, code 500, invalid_number"],
        [get, api_key, to, "HTTP 403, code 502, api_pending"],
        [get, test_key, to, "HTTP 200, code 200"],
    ]) {
        assert_eq!([&row[1], &row[2], &row[4]], expected[..3]);
        assert!(row[5].starts_with(expected[3]), "{row:?}");
        assert_eq!(row[3], "127.0.0.1");
    }
    assert!(shown[0][5].contains("The key was replaced."));
    assert!(shown[2][5].contains("Bad rows: 1; the first is in line 2."));
    assert!(shown[5][5].contains(Reason::ApiPending.sentence()));
    assert!(shown[5][5].contains("Request activation"), "{shown:#?}");
    assert_eq!(shown[6][5], "HTTP 200, code 200");

    // The page of the keys says that a system still uses the old key.
    let replaced = browser.get(&format!("{target}/keys")).text().replace("<!>", "");
    let told = "1 of the last API calls had a test key that was replaced";
    assert!(replaced.contains(told), "{replaced}");
    assert!(!replaced.contains("had an API key that was replaced"), "{replaced}");

    // The link of each reason leads to its explanation.
    let docs = browser.get("/docs").text();
    for reason in ["api_invalid", "invalid_file", "missing_parameter", "api_pending"] {
        let anchor = format!("reason-{reason}");
        assert!(page.contains(&format!("href=\"/docs#{anchor}\"")), "{reason}");
        assert!(docs.contains(&format!("id=\"{anchor}\"")), "{reason}");
    }
}

#[test]
fn calls_and_uses_of_keys_outlive_a_stop() {
    let server = TestServer::demo();
    let page = format!("/applications/{}", server.reference());
    server.accepted(server.key(), "57000001");
    let (_, place) = server.stop();
    let server = TestServer::start(place, &["--demo"], &[]);
    let mut browser = Browser::of_customer(&server);
    let calls = browser.get(&format!("{page}/start")).text();
    assert_eq!(rows(&calls).len(), 1, "{calls}");
    let keys = browser.get(&format!("{page}/keys")).text().replace("<!>", "");
    assert!(keys.contains("</time> from 127.0.0.1"), "{keys}");
}
