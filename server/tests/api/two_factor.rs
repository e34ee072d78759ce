//! Sign-in with a second factor, its setup, and step-up authentication before critical actions.
//! Each is tested in a browser without scripts, and with the answers that scripts get.

use serde_json::json;
use service::{Clock, TotpSecret};

use crate::client::Answer;
use crate::harness::{Place, TestServer};
use crate::portal::{Browser, PASSWORD, location};

/// Returns the code of an authenticator app this many steps from now.
pub fn code(secret: &TotpSecret, steps: i64) -> String {
    secret.code(Clock::system().now().plus_ms(steps * 30_000))
}

/// Sets up a second factor for an account and returns its secret.
pub fn give_factor(place: &Place, email: &str) -> TotpSecret {
    place.with_service(async |service| {
        let account = service.accounts().find_account(email).await.unwrap().unwrap();
        let secret = service.accounts().new_totp_secret();
        let actor = service::Actor::System;
        let given = service.accounts().give_factor(&actor, account.id, &secret).await;
        given.unwrap();
        secret
    })
}

/// Returns a browser that has submitted the password but no second factor.
pub fn half_signed_in<'a>(
    server: &'a TestServer,
    email: &str,
    next: &str,
) -> (Browser<'a>, String) {
    let mut browser = Browser::new(server);
    let fields = [("email", email), ("password", PASSWORD), ("next", next)];
    let answer = browser.post("sign-in", &fields);
    let leads_to = location(&answer).to_owned();
    (browser, leads_to)
}

/// Returns the secret that the setup page shows as text.
fn offered(page: &Answer) -> TotpSecret {
    let text = page.text();
    assert!(text.contains("<svg"), "{text}");
    let (_, after) = text.split_once("this secret into the app").unwrap();
    let (_, after) = after.split_once("class=\"key\">").unwrap();
    let (secret, _) = after.split_once('<').unwrap();
    TotpSecret::parse(&secret.replace(' ', "")).unwrap()
}

/// Returns the recovery codes on a page.
fn recovery_codes(page: &str) -> Vec<String> {
    let codes = page.split("<code>").skip(1);
    let codes = codes.filter_map(|after| Some(after.split_once('<')?.0.to_owned()));
    codes.filter(|code| code.len() == 29).collect()
}

/// Submits a form that is refused, and returns the page with the problem.
fn refused(
    browser: &mut Browser<'_>,
    page: &str,
    function: &str,
    fields: &[(&str, &str)],
) -> String {
    let answer = browser.post_from(&format!("http://test{page}"), function, fields);
    assert_eq!(location(&answer), format!("{page}#problem-{function}"));
    browser.get(page).text()
}

#[test]
fn a_password_alone_opens_nothing_where_there_is_a_second_factor() {
    let server = TestServer::empty();
    Browser::registered(&server, "one@example.org");
    let secret = give_factor(&server.place, "one@example.org");
    let (mut browser, leads_to) = half_signed_in(&server, "one@example.org", "/reports");
    assert_eq!(leads_to, "/login/code?next=%2Freports");
    let between = browser.cookie.clone();
    for page in ["/applications", "/account", "/account/two-factor", "/devices"] {
        let answer = browser.get(page);
        assert!(location(&answer).starts_with("/login"), "{page}");
    }
    assert_eq!(browser.get("/reports/messages.csv").status, 303);
    let page = browser.get(&leads_to).text();
    assert!(page.contains("name=\"code\""), "{page}");
    assert!(page.contains(">Recovery code<"), "{page}");

    let wrong = [("code", "000000"), ("next", "/reports")];
    let page = refused(&mut browser, "/login/code", "sign-in-code", &wrong);
    assert!(page.contains("The code is wrong"), "{page}");
    let shown = code(&secret, 0);
    let right = [("code", shown.as_str()), ("next", "/reports")];
    assert_eq!(location(&browser.post("sign-in-code", &right)), "/reports");
    assert_ne!(browser.cookie, between, "the session has a new id");
    assert_eq!(browser.get("/reports").status, 200);
    // Neither the old session ID nor the same code works again.
    let mut old = Browser::new(&server);
    old.cookie = between;
    assert!(location(&old.get("/reports")).starts_with("/login"));
    let page = refused(&mut old, "/login/code", "sign-in-code", &right);
    assert!(page.contains("Sign in again"), "{page}");
    let (mut other, _) = half_signed_in(&server, "one@example.org", "");
    let page = refused(&mut other, "/login/code", "sign-in-code", &right);
    assert!(page.contains("The code is wrong"), "{page}");
}

#[test]
fn a_second_factor_is_set_up_without_scripts() {
    let server = TestServer::empty();
    let email = "one@example.org";
    let mut browser = Browser::registered(&server, email);
    assert!(browser.get("/account").text().contains("Set up two-factor"));
    let first = browser.get("/account/two-factor");
    let secret = offered(&first);
    assert_eq!(offered(&browser.get("/account/two-factor")), secret);

    let page =
        refused(&mut browser, "/account/two-factor", "set-up-two-factor", &[("code", "000000")]);
    assert!(page.contains("The code is wrong"), "{page}");
    assert_eq!(offered(&browser.get("/account/two-factor")), secret);
    let shown = code(&secret, 0);
    let answer = browser.post("set-up-two-factor", &[("code", &shown)]);
    assert_eq!(location(&answer), "/applications");
    let codes = recovery_codes(&browser.get("/account/two-factor").text());
    assert_eq!(codes.len(), 10);
    let page = browser.get("/account/two-factor").text();
    assert_eq!(recovery_codes(&page), Vec::<String>::new(), "they are shown once");

    let (mut other, leads_to) = half_signed_in(&server, email, "");
    let page = other.get(&leads_to.replace('?', "?recovery=1&")).text();
    assert!(page.contains("name=\"recovery_code\""), "{page}");
    let fields = [("recovery_code", codes[3].as_str()), ("next", "")];
    assert_eq!(location(&other.post("sign-in-code", &fields)), "/applications");
    let shown = server.place.json(&["account", "show", email]);
    assert_eq!(shown["recovery_codes_left"], 9);
    let (mut third, _) = half_signed_in(&server, email, "");
    let page = refused(&mut third, "/login/code", "sign-in-code", &fields);
    assert!(page.contains("recovery code is wrong"), "{page}");

    let page = other.get("/account/two-factor").text();
    assert!(!page.contains("/fn/remove-two-factor"), "{page}");
    assert!(!page.contains("/fn/renew-recovery-codes"), "{page}");
    for (name, sentence) in [("codes", "The old ones stop working"), ("remove", "password alone")] {
        let page = other.get(&format!("/account/two-factor?confirm={name}")).text();
        assert!(page.contains(sentence), "{page}");
    }
    let removed = other.post("remove-two-factor", &[]);
    assert_eq!(location(&removed), "/account?removed-factor=1");
    let (_, leads_to) = half_signed_in(&server, email, "");
    assert_eq!(leads_to, "/applications");
}

#[test]
fn staff_without_a_second_factor_can_only_set_one_up() {
    let server = TestServer::empty();
    let email = "staff@example.org";
    let mut browser = Browser::registered(&server, email);
    server.place.json(&["account", "promote", email]);
    assert!(location(&browser.get("/support")).starts_with("/login"), "it was signed out");
    let (mut browser, leads_to) = half_signed_in(&server, email, "/support");
    assert_eq!(leads_to, "/support");
    for page in ["/support", "/support/carriers", "/applications", "/account", "/devices"] {
        assert_eq!(location(&browser.get(page)), "/account/two-factor", "{page}");
    }
    assert_eq!(browser.get("/support/carriers/events").status, 401);
    let answer = browser.get("/reports/messages.csv");
    assert_eq!(answer.header("location"), Some("/account/two-factor"));
    let change = [("act", "drain"), ("subject", "sandbox"), ("seen", "in use, the last one")];
    let answer = browser.ask("act", &change);
    assert_eq!(answer.json()["cause"], "SecondFactorMissing");
    browser.post("act", &change);
    assert!(server.place.json(&["carrier", "list"])[0]["drained_at"].is_null());

    let page = browser.get("/account/two-factor");
    let shown = code(&offered(&page), 0);
    browser.post("set-up-two-factor", &[("code", &shown)]);
    assert_eq!(browser.get("/support/carriers").status, 200);
    let page = refused(&mut browser, "/account/two-factor", "remove-two-factor", &[]);
    assert!(page.contains("must have a second factor"), "{page}");
}

#[test]
fn a_rule_for_all_binds_customers_too() {
    let settings =
        [("HELIOGRAPH_ALLOW_SANDBOX", "true"), ("HELIOGRAPH_REQUIRE_SECOND_FACTOR", "all")];
    let server = TestServer::start(Place::new(), &[], &settings);
    let mut browser = Browser::registered(&server, "one@example.org");
    assert_eq!(location(&browser.get("/applications")), "/account/two-factor");
    let answer = browser.post("create-application", &[("category", "SMS"), ("sender", "")]);
    assert!(location(&answer).contains("two-factor"));
    assert_eq!(location(&browser.post("sign-out", &[])), "/");
}

#[test]
fn a_new_phone_is_set_up_after_step_up_authentication() {
    let server = TestServer::empty();
    let email = "one@example.org";
    let mut browser = Browser::registered(&server, email);
    server.place.end_step_ups();
    let page = "/account/two-factor";
    let shown = browser.get(page).text();
    // The credential is asked for before the page shows a secret.
    assert!(!shown.contains("<svg class"), "{shown}");
    assert!(!shown.contains("this secret into the app"), "{shown}");
    assert!(shown.contains("name=\"credential\""), "{shown}");
    let wrong = [("credential", "not the password")];
    let again = refused(&mut browser, page, "confirm-it-is-you", &wrong);
    assert!(again.contains("name=\"credential\""), "{again}");
    browser.post_from(
        &format!("http://test{page}"),
        "confirm-it-is-you",
        &[("credential", PASSWORD)],
    );
    let secret = offered(&browser.get(page));
    browser.post("set-up-two-factor", &[("code", &code(&secret, 0))]);
    let shown = browser.get(page).text();
    let codes = recovery_codes(&shown);
    assert_eq!(codes.len(), 10);
    for words in ["I have saved them", "Download codes", "heliograph-recovery-codes.txt"] {
        assert!(shown.contains(words), "{shown}");
    }

    // A used recovery code is a sign of a lost phone.
    let (mut other, _) = half_signed_in(&server, email, "");
    other.post("sign-in-code", &[("recovery_code", &codes[0]), ("next", "")]);
    for page in ["/applications", "/account", page] {
        let shown = other.get(page).text();
        assert!(shown.contains("You used a recovery code: 9 left."), "{page}: {shown}");
        assert!(shown.contains("Set up your new phone now"), "{page}: {shown}");
    }
}

#[test]
fn signing_a_device_out_asks_again_who_it_is() {
    let server = TestServer::empty();
    let mut browser = Browser::registered(&server, "one@example.org");
    let (mut other, _) = half_signed_in(&server, "one@example.org", "");
    server.place.end_step_ups();
    let devices = browser.get("/devices").text();
    let mut ids = devices.split("name=\"device\" value=\"").skip(1);
    // The device that signed in last comes first.
    let id = ids.next().unwrap().split('"').next().unwrap().to_owned();
    let fields =
        |credential: &'static str| [("device", id.clone()), ("credential", credential.to_owned())];
    let sign_out = |browser: &mut Browser<'_>, credential| {
        let fields = fields(credential);
        let fields = fields.each_ref().map(|(name, text)| (*name, text.as_str()));
        browser.ask("sign-out-device", &fields)
    };
    for (credential, cause) in [("", "PasswordNeeded"), ("not the password", "StepUpPasswordWrong")]
    {
        let answer = sign_out(&mut browser, credential);
        assert_eq!(answer.json()["cause"], json!({ "Refused": cause }));
    }
    assert_eq!(other.get("/devices").status, 200);
    let before = browser.cookie.clone();
    sign_out(&mut browser, PASSWORD);
    assert_ne!(browser.cookie, before, "the session has a new id");
    assert_eq!(browser.get("/devices").status, 200);
    assert!(location(&other.get("/devices")).starts_with("/login"));
}

#[test]
fn a_disabled_account_is_told_so_and_its_keys_answer_503() {
    let server = TestServer::demo();
    let mut browser = Browser::of_customer(&server);
    let email = server.ready["customer"]["email"].as_str().unwrap();
    let password = server.ready["customer"]["password"].as_str().unwrap();
    let disable = ["account", "disable", email, "--reason", "unpaid"];
    server.place.json(&disable);
    assert!(location(&browser.get("/applications")).starts_with("/login"));
    let fields = [("email", email), ("password", password), ("next", "")];
    let page = refused(&mut browser, "/login", "sign-in", &fields);
    assert!(page.contains("This account is disabled"), "{page}");
    for key in [server.key(), server.test_key()] {
        let answer = server.send(key, &[("number", "57000001"), ("message", "Hello")]);
        assert_eq!((answer.status, &answer.json()["code"]), (403, &json!(503)));
        assert_eq!(answer.json()["reason"], "api_suspended");
        let answer = server.upload(key, &[("numbers", b"57000001"), ("message", b"Hello")]);
        assert_eq!(answer.json()["reason"], "api_suspended");
        assert_eq!(server.count(key), 0, "reports can be read");
    }
    assert_eq!(server.balance(server.key()), "10");
    server.place.json(&["account", "enable", email]);
    server.accepted(server.key(), "57000001");
}
