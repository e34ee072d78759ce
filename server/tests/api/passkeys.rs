//! A page's scripts add, use and remove passkeys.

use std::net::TcpListener;

use serde_json::json;
use testing::authenticator::Authenticator;

use crate::harness::{Place, TestServer};
use crate::portal::{Browser, location};
use crate::two_factor::{code, give_factor, half_signed_in};

const EMAIL: &str = "one@example.org";

/// Starts a server whose base URL has a host name. Returns the server and the site's origin.
fn server() -> (TestServer, String) {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let origin = format!("http://localhost:{}", address.port());
    let settings = [
        ("HELIOGRAPH_ALLOW_SANDBOX", "true"),
        ("HELIOGRAPH_ADDR", &address.to_string()),
        ("HELIOGRAPH_BASE_URL", &origin),
    ];
    (TestServer::start(Place::new(), &[], &settings), origin)
}

/// Calls a server function that returns a string.
fn text(browser: &mut Browser<'_>, function: &str) -> String {
    let answer = browser.ask(function, &[]);
    answer.json().as_str().unwrap().to_owned()
}

#[test]
fn a_passkey_is_added_used_and_removed() {
    let (server, origin) = server();
    Browser::registered(&server, EMAIL);
    let secret = give_factor(&server.place, EMAIL);
    let (mut browser, leads_to) = half_signed_in(&server, EMAIL, "");
    assert_eq!(leads_to, "/login/code?next=%2Fapplications");
    let refused = browser.ask("ask-passkey", &[]);
    assert_eq!(refused.json()["cause"], json!({ "Refused": "NoSuchPasskey" }));
    browser.post("sign-in-code", &[("code", &code(&secret, 0))]);

    server.place.end_step_ups();
    let fields = |credential| [("name", "Phone"), ("credential", credential)];
    let refused = browser.ask("begin-passkey", &fields(""));
    assert_eq!(refused.json()["cause"], json!({ "Refused": "CodeNeeded" }));
    let credential = code(&secret, 1);
    assert_eq!(browser.ask("begin-passkey", &fields(&credential)).status, 200);
    let mut phone = Authenticator::default();
    let made = phone.make(&origin, &text(&mut browser, "passkey-to-add"));
    assert_eq!(browser.ask("add-passkey", &[("answer", &made)]).status, 200);
    // Without scripts, a passkey can be removed, but not added or used.
    let page = browser.get("/account/two-factor").text();
    assert!(page.contains(">Phone<") && page.contains("Remove"), "{page}");
    assert!(!page.contains("Add a passkey"), "{page}");

    let (mut other, leads_to) = half_signed_in(&server, EMAIL, "/reports");
    assert_eq!(leads_to, "/login/code?passkey=1&next=%2Freports");
    assert!(!other.get(&leads_to).text().contains("Use a passkey"));
    let used = phone.answer(&origin, &text(&mut other, "ask-passkey"));
    let between = other.cookie.clone();
    let fields = [("passkey", used.as_str()), ("next", "/reports")];
    assert_eq!(location(&other.post("sign-in-code", &fields)), "/reports");
    assert_ne!(other.cookie, between, "the session has a new id");
    assert_eq!(other.get("/reports").status, 200);

    server.place.end_step_ups();
    let remove = |browser: &mut Browser<'_>, credential: &str| {
        let fields = [("passkey", "1"), ("credential", credential)];
        browser.ask("remove-passkey", &fields)
    };
    let refused = remove(&mut other, "");
    let needed = json!({ "Refused": "CodeOrPasskeyNeeded" });
    assert_eq!(refused.json()["cause"], needed);
    let used = phone.answer(&origin, &text(&mut other, "ask-passkey"));
    let before = other.cookie.clone();
    assert_eq!(remove(&mut other, &used).status, 200);
    assert_ne!(other.cookie, before, "the session has a new id");
    assert!(!other.get("/account/two-factor").text().contains(">Phone<"));
    let (_, leads_to) = half_signed_in(&server, EMAIL, "");
    assert_eq!(leads_to, "/login/code?next=%2Fapplications");
}

#[test]
fn a_site_without_a_name_offers_no_passkeys() {
    let server = TestServer::empty();
    let mut browser = Browser::registered(&server, EMAIL);
    let refused = browser.ask("begin-passkey", &[("name", "Phone")]);
    let unavailable = json!({ "Refused": "PasskeysUnavailable" });
    assert_eq!(refused.json()["cause"], unavailable);
}
