//! The confirmations of staff's actions, in a browser without scripts.

use serde_json::Value;
use service::{Clock, TotpSecret};

use crate::client::Answer;
use crate::harness::{TestServer, until};
use crate::portal::{Browser, PASSWORD, location};
use crate::two_factor::{code, give_factor};

/// Returns the address of a confirmation, which returns to the page `next`.
fn address(act: &str, subject: &str, next: &str) -> String {
    let escape = |text: &str| text.replace(' ', "%20").replace(':', "%3A").replace('?', "%3F");
    format!("/support/confirm?act={act}&subject={}&next={}", escape(subject), escape(next))
}

/// Returns the value of a hidden field of a page.
fn hidden(page: &str, name: &str) -> String {
    let (_, after) = page.split_once(&format!("name=\"{name}\" value=\"")).unwrap();
    after.split('"').next().unwrap().to_owned()
}

/// Submits the form of a confirmation as the page has it, with more fields.
fn confirm(
    browser: &mut Browser<'_>,
    (act, subject, next): (&str, &str, &str),
    page: &str,
    more: &[(&str, &str)],
) -> Answer {
    let seen = hidden(page, "seen");
    let fields = [("act", act), ("subject", subject), ("next", next), ("seen", &seen)];
    let fields = [fields.as_slice(), more].concat();
    browser.post_from(&format!("http://test{}", address(act, subject, next)), "act", &fields)
}

/// Opens a confirmation and confirms it. Returns the page that follows.
pub fn confirmed(
    browser: &mut Browser<'_>,
    (act, subject, next): (&str, &str, &str),
    more: &[(&str, &str)],
) -> String {
    let page = browser.get(&address(act, subject, next)).text();
    let answer = confirm(browser, (act, subject, next), &page, more);
    let leads_to = location(&answer).to_owned();
    assert!(!leads_to.contains('#'), "{}", browser.get(leads_to.split('#').next().unwrap()).text());
    browser.get(&leads_to).text()
}

fn status(server: &TestServer) -> Value {
    server.place.json(&["application", "show", server.reference()])["status"].clone()
}

#[test]
fn an_application_is_suspended_once_and_only_as_the_page_showed_it() {
    let server = TestServer::demo();
    let mut staff = Browser::of_staff(&server);
    let reference = server.reference();
    let suspend = ("suspend", reference, "/support/applications?list=active");
    let (act, subject, next) = suspend;
    let here = address(act, subject, next);
    let page = staff.get(&here).text();
    let customer = server.ready["customer"]["email"].as_str().unwrap();
    for shown in [customer, "Active", "USD", "You can undo this", "name=\"reason\""] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    // Bad reasons are answered, and nothing happens.
    for (reason, sentence) in [
        ("  ".to_owned(), "Write a reason."),
        ("x".repeat(10_000), "at most 500 characters"),
        ("a\u{0}b".to_owned(), "no control characters"),
    ] {
        let answer = confirm(&mut staff, suspend, &page, &[("reason", &reason)]);
        assert_eq!(location(&answer), format!("{here}#problem-act"));
        let again = staff.get(&here).text();
        assert!(again.contains(sentence), "{sentence}: {again}");
    }
    assert_eq!(status(&server), "Active");
    // A colleague is faster. The page says who it was, and has no button any more.
    server.place.json(&["application", "suspend", reference, "--reason", "First"]);
    let answer = confirm(&mut staff, suspend, &page, &[("reason", "Second")]);
    assert_eq!(location(&answer), format!("{here}#problem-act"));
    let after = staff.get(&here).text();
    assert!(after.contains("An application that is Suspended can"), "{after}");
    assert!(after.contains("suspended the application (Active → Suspended) at"), "{after}");
    assert!(!after.contains("name=\"seen\""), "{after}");
    let shown = server.place.json(&["application", "show", reference]);
    assert_eq!(shown["suspend_reason"], "First", "{shown}");

    // Undo. The state was another one meanwhile, and is as the old page showed it again.
    let page = confirmed(&mut staff, ("reinstate", reference, next), &[]);
    let said = format!("Application {reference} is reinstated.");
    for shown in [said.as_str(), "act=suspend", "Undo"] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    assert_eq!(status(&server), "Active");
    let page = confirmed(&mut staff, suspend, &[("reason", "A payment was disputed.")]);
    assert!(page.contains(&format!("Application {reference} is suspended.")), "{page}");
    assert!(page.contains("No application is Active."), "{page}");
    // Somebody else's site can't choose the page that follows.
    let answer = confirm(
        &mut staff,
        ("reinstate", reference, "//elsewhere.example/"),
        "name=\"seen\" value=\"Suspended\"",
        &[],
    );
    assert!(location(&answer).starts_with("/support?done=reinstate"), "{}", location(&answer));
    for unknown in [("suspend", "000000"), ("approve", reference), ("nothing", "1"), ("drain", "x")]
    {
        let answer = staff.get(&address(unknown.0, unknown.1, ""));
        assert_eq!(answer.status, 404, "{unknown:?}");
    }
}

/// Creates an application that waits for activation, and returns its owner and its reference.
fn waiting<'a>(server: &'a TestServer, email: &str) -> (Browser<'a>, String) {
    let mut owner = Browser::registered(server, email);
    let (sender, _) = email.split_once('@').unwrap();
    let answer = owner.post("create-application", &[("category", "SMS"), ("sender", sender)]);
    let reference = location(&answer).rsplit('/').next().unwrap().to_owned();
    owner.post("request-activation", &[("reference", &reference)]);
    (owner, reference)
}

/// Assigns and returns unmatched deposits. The next one opens after each.
fn decide_deposits(server: &TestServer, staff: &mut Browser<'_>, reference: &str) {
    for (bank_id, amount) in [("bank-1", "1250.5"), ("bank-2", "7"), ("bank-3", "7")] {
        server.place.json(&["deposit", "add", "rent", amount, "--bank-id", bank_id]);
    }
    let fields = [("bank_id", "bank-1"), ("reference", reference)];
    let leads_to = location(&staff.post("assign-deposit", &fields)).to_owned();
    assert_eq!(leads_to, "/support/deposits/assign?bank_id=bank-2&decided=bank-1");
    let page = staff.get(&leads_to).text();
    let said = format!("1,250.50 USD (bank-1) is assigned to {reference}. Below is the next");
    assert!(page.contains(&said), "{page}");
    let fields = [("bank_id", "bank-2"), ("reason", "Asked for by phone.")];
    let leads_to = location(&staff.post("return-deposit", &fields)).to_owned();
    assert_eq!(leads_to, "/support/deposits/assign?bank_id=bank-3&decided=bank-2");
    let said = "7.00 USD (bank-2) is marked as returned to the bank.";
    assert!(staff.get(&leads_to).text().contains(said));
    let fields = [("bank_id", "bank-3"), ("reference", reference)];
    let leads_to = location(&staff.post("assign-deposit", &fields)).to_owned();
    assert_eq!(leads_to, "/support/deposits?decided=bank-3");
    let said = format!("7.00 USD (bank-3) is assigned to {reference}.");
    assert!(staff.get(&leads_to).text().contains(&said));
    // Nobody can make the page say something else.
    for bank_id in ["bank-4", "%3Cb%3E"] {
        let page = staff.get(&format!("/support/deposits?decided={bank_id}")).text();
        assert!(!page.contains("notice-good"), "{page}");
    }
}

#[test]
fn a_decision_on_the_page_of_a_case_opens_the_next_case() {
    let server = TestServer::demo();
    let mut staff = Browser::of_staff(&server);
    let (_, first) = waiting(&server, "first@example.org");
    let (_, second) = waiting(&server, "second@example.org");
    let approve = |staff: &mut Browser<'_>, reference: &str| {
        let here = format!("/support/applications/{reference}");
        let page = staff.get(&here).text();
        assert!(page.contains(&format!("name=\"next\" value=\"{here}\"")), "{page}");
        let fields = [("act", "approve"), ("subject", reference), ("next", &here)];
        let answer = staff.post_from(&format!("http://test{here}"), "act", &fields);
        location(&answer).to_owned()
    };
    let done = |reference: &str| {
        let name = format!("name=application%20{reference}");
        format!("?done=approve&subject={reference}&of={reference}&{name}")
    };
    let leads_to = approve(&mut staff, &first);
    assert_eq!(leads_to, format!("/support/applications/{second}{}", done(&first)));
    let page = staff.get(&leads_to).text();
    let said = "Below is the next request, which has waited longest.";
    for shown in [said, &format!("Back to {first}"), &second] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    // None waits any more.
    let leads_to = approve(&mut staff, &second);
    assert_eq!(leads_to, format!("/support/applications{}", done(&second)));
    let page = staff.get(&leads_to).text();
    assert!(page.contains(&format!("Application {second} is approved.")), "{page}");
    // The same with the sender names that the applications request.
    let here = |reference: &str| format!("/support/applications/{reference}");
    let page = staff.get(&here(&first)).text();
    assert!(page.contains("Requested sender name"), "{page}");
    let id_of = |page: &str| {
        let (_, after) = page.split_once("value=\"accept\"").unwrap();
        hidden(after, "subject")
    };
    let id = id_of(&page);
    let fields = [("act", "accept"), ("subject", &id), ("next", &here(&first))];
    let answer = staff.post_from(&format!("http://test{}", here(&first)), "act", &fields);
    let leads_to = location(&answer).to_owned();
    let done = format!("?done=accept&subject={id}&of={first}&name=the%20sender%20name%20first");
    assert_eq!(leads_to, format!("{}{done}", here(&second)));
    let page = staff.get(&leads_to).text();
    for shown in ["The sender name first is accepted.", said, &format!("Back to {first}")] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    let reject = id_of(&page);
    let page = confirmed(&mut staff, ("reject", &reject, &here(&second)), &[("reason", "No")]);
    for shown in ["The sender name second is rejected.", "No sender name waits for a decision."] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    assert!(!staff.get(&here(&second)).text().contains("Requested sender name"));
    decide_deposits(&server, &mut staff, &first);
    // On its page, an application is suspended through the confirmation.
    let next = format!("/support/applications/{first}");
    let suspend = ("suspend", first.as_str(), next.as_str());
    assert!(staff.get(&next).text().contains("action=\"/support/confirm\""));
    let page = confirmed(&mut staff, suspend, &[("reason", "A payment was disputed.")]);
    let said = format!("Application {first} is suspended.");
    for shown in [said.as_str(), "Undo", "It is suspended. Reason: A payment"] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    assert!(!page.contains(&format!("Application {first}</a>")), "a link to itself: {page}");
}

#[test]
fn a_confirmation_asks_who_it_is_before_anything_is_typed() {
    let server = TestServer::demo();
    let mut staff = Browser::of_staff(&server);
    let drain = ("drain", "sandbox", "/support/carriers");
    let here = address(drain.0, drain.1, drain.2);
    assert!(!staff.get(&here).text().contains("name=\"credential\""));
    server.place.end_step_ups();
    let page = staff.get(&here).text();
    assert!(page.contains("name=\"credential\""), "{page}");
    // It is the only carrier, and the page says so.
    assert!(page.contains("No other carrier takes messages now."), "{page}");
    let drained = || server.place.json(&["carrier", "list"])[0]["drained_at"].clone();
    for (credential, sentence) in [("", "Enter a code"), ("000000", "This code is wrong")] {
        let answer = confirm(&mut staff, drain, &page, &[("credential", credential)]);
        assert_eq!(location(&answer), format!("{here}#problem-act"));
        let again = staff.get(&here).text();
        assert!(again.contains(sentence), "{sentence}: {again}");
    }
    assert_eq!(drained(), Value::Null);
    let secret = server.ready["staff"]["totp_secret"].as_str().unwrap();
    let shown = code(&TotpSecret::parse(secret).unwrap(), 1);
    let before = staff.cookie.clone();
    let answer = confirm(&mut staff, drain, &page, &[("credential", &shown)]);
    let leads_to = "/support/carriers?done=drain&subject=sandbox&name=carrier%20sandbox";
    assert_eq!(location(&answer), leads_to);
    assert!(drained().is_string());
    assert_ne!(staff.cookie, before, "the session has a new id");
    assert!(staff.get(leads_to).text().contains("Carrier sandbox is drained."));
    // It is drained once. The page says who did it.
    let answer = confirm(&mut staff, drain, &page, &[]);
    assert_eq!(location(&answer), format!("{here}#problem-act"));
    assert!(staff.get(&here).text().contains("This is done already"));
    let page = confirmed(&mut staff, ("resume", "sandbox", "/support/carriers"), &[]);
    assert!(page.contains("Carrier sandbox is resumed."), "{page}");
    assert_eq!(drained(), Value::Null);
}

#[test]
fn carriers_are_reloaded_through_a_confirmation() {
    let server = TestServer::demo();
    let mut staff = Browser::of_staff(&server);
    let page = staff.get("/support/carriers").text();
    for shown in ["Reload carriers", "No mail leaves when a carrier is down", "smtp_url"] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    // The sandbox has no connections that bind.
    assert!(!page.contains("Bind again"), "{page}");
    assert_eq!(staff.get(&address("rebind", "sandbox", "/support/carriers")).status, 404);
    let reload = ("reload-carriers", "", "/support/carriers");
    let page = staff.get(&address(reload.0, reload.1, reload.2)).text();
    for shown in ["Carriers now", "sandbox", "If the file has an error, nothing changes"] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    let page = confirmed(&mut staff, reload, &[]);
    assert!(page.contains("Every process reloads carriers and routes."), "{page}");
    until("the reload", || server.log().contains("reloaded the settings").then_some(()));
    let listed = server.place.json(&["audit", "list"]).to_string();
    assert!(listed.contains("carrier.reload"), "{listed}");
}

#[test]
fn an_account_is_disabled_promoted_and_demoted_through_confirmations() {
    let server = TestServer::demo();
    let mut staff = Browser::of_staff(&server);
    let email = "person@example.org";
    Browser::registered(&server, email);
    let id = server.place.json(&["account", "show", email])["id"].to_string();
    let next = format!("/support/accounts/{id}");
    let on = |act: &'static str| (act, id.as_str(), next.as_str());
    let shown = || server.place.json(&["account", "show", email]);

    let page = confirmed(&mut staff, on("disable"), &[("reason", "A payment was disputed.")]);
    let said = |what: &str| format!("Account {email} {what}");
    assert!(page.contains(&said("is disabled.")), "{page}");
    assert!(!page.contains("Open the account"), "a link to itself: {page}");
    assert!(shown()["disabled_at"].is_string(), "{}", shown());
    let page = confirmed(&mut staff, on("enable"), &[]);
    assert!(page.contains(&said("is enabled.")), "{page}");

    // Staff need a second factor before they act.
    let page = staff.get(&address("promote", &id, &next)).text();
    assert!(page.contains("This person has no second factor"), "{page}");
    assert!(!page.contains("name=\"seen\""), "{page}");
    give_factor(&server.place, email);
    let page = confirmed(&mut staff, on("promote"), &[]);
    assert!(page.contains(&said("is staff now.")), "{page}");
    let page = confirmed(&mut staff, on("demote"), &[]);
    assert!(page.contains(&said("is a customer now.")), "{page}");
    let page = staff.get(&address("reset-factor", &id, &next)).text();
    for shown in [
        format!("Reset the second factor of account {email}"),
        "The owner gets no mail, because no mail server is set up.".to_owned(),
    ] {
        assert!(page.contains(&shown), "{shown}: {page}");
    }
    assert!(!page.contains("gets a mail"), "{page}");
    let page = confirmed(&mut staff, on("reset-factor"), &[]);
    assert!(page.contains(&said("has no second factor any more.")), "{page}");
    let page = confirmed(&mut staff, on("make-reset-link"), &[]);
    for shown in ["Earlier links no longer work.", "/reset/"] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    // Their own account isn't theirs to change here.
    let me = server.ready["staff"]["email"].as_str().unwrap();
    let mine = server.place.json(&["account", "show", me])["id"].to_string();
    let page = staff.get(&format!("/support/accounts/{mine}")).text();
    assert!(page.contains("This is your own account."), "{page}");
    assert!(!page.contains("action=\"/support/confirm\""), "{page}");
    let page = staff.get(&address("demote", &mine, &next)).text();
    assert!(page.contains("This is your own account. Another member of staff"), "{page}");
    assert!(!page.contains("name=\"seen\""), "{page}");
    let mails = server.place.json(&["mail", "list"]).to_string();
    for subject in [
        "You are a member of staff now",
        "You are no longer a member of staff",
        "The second factor of your account changed",
    ] {
        assert!(mails.contains(subject), "{subject}: {mails}");
    }
}

#[test]
fn a_number_is_removed_through_a_confirmation_that_can_be_undone() {
    let server = TestServer::demo();
    let mut staff = Browser::of_staff(&server);
    let (next, reference) = ("/support/numbers", server.reference());
    let add = |staff: &mut Browser<'_>, reference: &str| {
        let fields = [("number", "50000001"), ("keyword", "INFO"), ("reference", reference)];
        staff.post_from(&format!("http://test{next}"), "ask-number", &fields)
    };
    // An unknown reference is refused beside what was typed.
    add(&mut staff, "000000");
    let page = staff.get(next).text();
    for shown in ["No application has this reference.", "value=\"50000001\""] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    let answer = add(&mut staff, reference);
    let subject = format!("26650000001 INFO {reference}");
    assert!(answer.header("location").unwrap().contains("act=add-number"));
    assert!(staff.get(next).text().contains("No application has a number."));
    let page = confirmed(&mut staff, ("add-number", &subject, next), &[]);
    assert!(page.contains("Number 26650000001 INFO is assigned."), "{page}");
    let remove = ("remove-number", subject.as_str(), next);
    assert!(staff.get(next).text().contains(&format!("value=\"{subject}\"")));
    let page = confirmed(&mut staff, remove, &[]);
    let said = "Number 26650000001 INFO is removed.";
    for shown in [said, "Undo", "No application has a number."] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    let page = staff.get(&address(remove.0, remove.1, remove.2)).text();
    assert!(page.contains("This is done already, so nothing was changed."), "{page}");
    let page = confirmed(&mut staff, ("add-number", &subject, next), &[]);
    assert!(page.contains("Number 26650000001 INFO is assigned."), "{page}");
    assert!(staff.get(next).text().contains(&format!("value=\"{subject}\"")));
}

#[test]
fn a_name_with_a_warning_is_accepted_only_after_a_confirmation() {
    let server = TestServer::demo();
    let mut staff = Browser::of_staff(&server);
    waiting(&server, "bank@example.org");
    let page = staff.get("/support/senders").text();
    assert!(page.contains("Reserved word: bank"), "{page}");
    let (_, after) = page.split_once("value=\"accept\"").unwrap();
    let id = hidden(after, "subject");
    let accept = ("accept", id.as_str(), "/support/senders");
    // An old button leads to the confirmation, too.
    let fields = [("act", "accept"), ("subject", &id), ("next", accept.2)];
    let answer = staff.post_from("http://test/support/senders", "act", &fields);
    let here = location(&answer).to_owned();
    assert!(here.starts_with("/support/confirm?act=accept"), "{here}");
    let page = staff.get(&here).text();
    for shown in ["Accept the sender name bank", "Reserved word: bank", "take back an accepted"] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    let page = confirmed(&mut staff, accept, &[]);
    assert!(page.contains("The sender name bank is accepted."), "{page}");
}

/// Asks for a price of the prefix 27, and returns the address that follows.
fn ask_price(staff: &mut Browser<'_>, price: &str, from: &str) -> String {
    let fields =
        [("prefix", "27"), ("price", price), ("prefix_from", from), ("action", "set-price")];
    let page = "http://test/support/prices";
    location(&staff.post_from(page, "ask-prefix-price", &fields)).to_owned()
}

#[test]
fn a_price_is_confirmed_typed_twice_if_it_is_far_off_and_cancelled() {
    let server = TestServer::demo();
    let mut staff = Browser::of_staff(&server);
    let refused = "/support/prices#problem-ask-prefix-price";
    for price in ["0,3", "0 3", "$0.3", "3e-1", "+0.3", "0.1234567", "", "0.01"] {
        assert_eq!(ask_price(&mut staff, price, ""), refused, "{price:?}");
        let page = staff.get("/support/prices").text();
        assert!(page.contains("class=\"alert\""), "{price:?}: {page}");
    }
    let of = || server.place.json(&["price", "of", "27821234567"])["per_page"].to_string();

    // 30 instead of 0.3 has to be typed again.
    let leads_to = ask_price(&mut staff, " 30 ", "");
    let page = staff.get(&leads_to).text();
    for shown in [
        "0.25 → 30.00 USD per page (factor 120)",
        "name=\"repeated\"",
        "At once",
        "price of numbers beginning with 27 by more than a factor of 3. Type the new price again.",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    let request = ("set-price", "27 30 now", "/support/prices");
    for repeated in ["", "0.3", "30 30", "much"] {
        let answer = confirm(&mut staff, request, &page, &[("repeated", repeated)]);
        assert!(location(&answer).ends_with("#problem-act"), "{repeated}");
    }
    assert_eq!(of(), "0.25");
    let answer = confirm(&mut staff, request, &page, &[("repeated", "30.0")]);
    let said = "“numbers beginning with 27 0.25 → 30.00 USD per page, at once” is saved.";
    let leads_to = location(&answer).to_owned();
    assert!(leads_to.starts_with("/support/prices?done=set-price&name="), "{leads_to}");
    assert!(staff.get(&leads_to).text().contains(said));
    assert_eq!(of(), "30");
    // The old page was about another price.
    let answer = confirm(&mut staff, request, &page, &[("repeated", "30")]);
    assert!(location(&answer).ends_with("#problem-act"));
    let page = staff.get(&address(request.0, request.1, request.2)).text();
    assert!(page.contains("This changed after you opened the page"), "{page}");

    // A change that isn't in force yet is cancelled, once. Then its time is free again.
    let later = Clock::system().now().plus_ms(2 * 86_400_000).to_string();
    let (day, from) = (&later[..10], format!("{}T00:00:00.000Z", &later[..10]));
    ask_price(&mut staff, "29", day);
    let set = format!("27 29 {from}");
    let page = confirmed(&mut staff, ("set-price", &set, "/support/prices"), &[]);
    assert!(page.contains("act=cancel-price"), "{page}");
    let coming = "No change is set for later.";
    assert!(!page.contains(coming), "{page}");
    let (_, undo) = page.split_once("act=cancel-price&amp;subject=").unwrap();
    let id = undo.split('&').next().unwrap().to_owned();
    let cancel = ("cancel-price", id.as_str(), "/support/prices");
    let page = staff.get(&address(cancel.0, cancel.1, cancel.2)).text();
    assert!(page.contains("stays at 30.00 USD per page"), "{page}");
    let when = format!("set for {day} 00:00:00 UTC");
    assert!(page.contains(&when), "{page}");
    let answer = confirm(&mut staff, cancel, &page, &[]);
    let leads_to = location(&answer).to_owned();
    let page = staff.get(&leads_to).text();
    let said = format!("30.00 → 29.00 USD per page, from {day} 00:00:00 UTC” is cancelled.");
    for shown in [said.as_str(), "act=set-price", "Undo"] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    assert!(page.contains(coming), "{page}");
    let page = staff.get(&address(cancel.0, cancel.1, cancel.2)).text();
    assert!(page.contains("be cancelled: it is in force"), "{page}");
    confirmed(&mut staff, ("set-price", &set, "/support/prices"), &[]);
    assert!(server.place.run(&["check"]).status.success());
}

#[test]
fn a_closed_account_leaves_no_request_to_staff() {
    let server = TestServer::demo();
    let mut staff = Browser::of_staff(&server);
    let (mut owner, reference) = waiting(&server, "leaving@example.org");
    let lists = ["/support/senders", "/support/applications?list=waiting"];
    for list in lists {
        assert!(staff.get(list).text().contains(&reference), "{list}");
    }
    let fields = [("references", reference.as_str()), ("password", PASSWORD)];
    assert_eq!(location(&owner.post("close-account", &fields)), "/login?closed=1");
    for list in lists {
        assert!(!staff.get(list).text().contains(&reference), "{list}");
    }
    let page = staff.get("/support/applications?list=all").text();
    assert!(page.contains("Account closed"), "{page}");
    let page = staff.get(&address("suspend", &reference, "")).text();
    assert!(page.contains("This account was closed by its owner"), "{page}");
}

#[test]
fn a_reset_link_that_is_used_or_false_says_so_before_a_password_is_typed() {
    let server = TestServer::empty();
    let mut browser = Browser::registered(&server, "one@example.org");
    let issued = server.place.json(&["account", "reset", "one@example.org"]);
    let link = issued["link"].as_str().unwrap();
    let token = link.rsplit('/').next().unwrap().to_owned();
    let path = format!("/reset/{token}");
    assert!(browser.get(&path).text().contains("name=\"new_password\""));
    let fields = [("token", token.as_str()), ("new_password", "another correct horse")];
    assert_eq!(location(&browser.post("reset", &fields)), "/login?reset=1");
    for path in [path.as_str(), "/reset/x"] {
        let page = browser.get(path).text();
        assert!(page.contains("This one was used, is too old"), "{page}");
        assert!(!page.contains("name=\"new_password\""), "{page}");
        assert!(page.contains("/forgot"), "{page}");
    }
}
