//! How many changes a signed-in account may make within a short time, in every part of the portal.

use crate::harness::{Place, TestServer};
use crate::portal::Browser;

/// The number of changes that an account may make at once.
const AT_ONCE: usize = 5;

fn server() -> TestServer {
    let at_once = AT_ONCE.to_string();
    let environment =
        [("HELIOGRAPH_CHANGES_AT_ONCE", at_once.as_str()), ("HELIOGRAPH_ALLOW_SANDBOX", "true")];
    TestServer::start(Place::new(), &[], &environment)
}

/// Returns the number of recorded changes of the account's mail settings.
fn recorded(server: &TestServer) -> i64 {
    server.place.rows("audit WHERE action = 'account.mails'")
}

#[test]
fn an_account_that_changed_as_much_as_it_may_is_refused_and_told_when_to_go_on() {
    let server = server();
    let mut browser = Browser::registered(&server, "first@example.org");
    // Each form changes something, because forms that change nothing aren't recorded.
    let change = |browser: &mut Browser<'_>, n: usize| {
        let mail = if n.is_multiple_of(2) { "deposit" } else { "decision" };
        browser.ask("set-mails", &[(mail, "on")])
    };
    let answers: Vec<_> = (0..40).map(|n| change(&mut browser, n)).collect();
    let refused: Vec<_> = answers.iter().filter(|a| a.status == 429).collect();
    // The bucket refills a little while the forms are sent.
    assert!(refused.len() > 10, "{}", refused.len());
    let accepted = i64::try_from(answers.len() - refused.len()).unwrap();
    assert!(recorded(&server) <= accepted);
    for answer in refused {
        assert_eq!(answer.header("retry-after"), Some("1"));
        let problem = answer.json();
        assert_eq!(problem["cause"]["Refused"]["TooManyChanges"]["retry_after_s"], 1);
    }
    // Another account isn't limited, and reading doesn't count.
    let mut other = Browser::registered(&server, "second@example.org");
    assert_ne!(change(&mut other, 0).status, 429);
    for _ in 0..2 * AT_ONCE {
        assert_eq!(other.get("/account").status, 200);
    }
}

#[test]
fn without_scripts_the_form_says_so_too() {
    let server = server();
    let mut browser = Browser::registered(&server, "first@example.org");
    let reference = browser.application();
    let page = format!("/applications/{reference}/sender");
    let fields = [("reference", reference.as_str()), ("sender", "Acme")];
    let refused = (0..100)
        .map(|_| browser.post_from(&format!("http://test{page}"), "request-sender-name", &fields))
        .find(|answer| answer.status != 302)
        .unwrap();
    assert_eq!(refused.status, 429);
    assert_eq!(refused.header("retry-after"), Some("1"));
    let sentence = "You changed a lot within a short time";
    assert!(refused.text().contains(sentence), "{}", refused.text());
    // The browser then loads the form, which says the same.
    let form = format!("0; url={page}#problem-request-sender-name");
    assert_eq!(refused.header("refresh"), Some(form.as_str()));
    assert!(browser.get(&page).text().contains(sentence));
    assert_eq!(server.place.rows("sender_requests"), 1);
}

#[test]
fn files_that_staff_import_are_limited_too() {
    let environment = [("HELIOGRAPH_CHANGES_AT_ONCE", "5")];
    let server = TestServer::start(Place::new(), &["--demo"], &environment);
    let mut staff = Browser::of_staff(&server);
    // A form without a file is invalid, but counts.
    let refused = (0..100)
        .map(|_| staff.request("POST", "/support/import/file", &[], ""))
        .find(|answer| answer.status != 400)
        .unwrap();
    assert_eq!(refused.status, 429);
    assert_eq!(refused.header("retry-after"), Some("1"));
}
