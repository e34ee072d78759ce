//! Mails through a real mail server (npm's `smtp-server`) that accepts them, refuses them
//! temporarily or permanently, hangs, or closes the connection; and mails without a mail server.

use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, Once};

use serde_json::Value;
use testing::events::read_events;

use crate::harness::{Place, Running, TestServer, until};
use crate::portal::{Browser, location};

/// A mail server in a process of its own, and its events.
struct MailServer {
    url: String,
    events: Arc<Mutex<Vec<Value>>>,
    /// The process ends when this is closed, even if the test is killed.
    _input: ChildStdin,
    _process: Running,
}

impl MailServer {
    fn start() -> Self {
        set_up();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut child = Command::new("node")
            .arg(root.join("tests/peers/node/smtp.js"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let events = read_events(&mut child);
        let mut server = Self {
            url: String::new(),
            events,
            _input: child.stdin.take().unwrap(),
            _process: Running(child),
        };
        let port = until("a listening mail server", || {
            server.events_of("listening").first()?["port"].as_u64()
        });
        server.url = format!("smtp://127.0.0.1:{port}");
        server
    }

    fn events_of(&self, name: &str) -> Vec<Value> {
        let events = self.events.lock().unwrap();
        let wanted = events.iter().filter(|event| event["event"] == name);
        wanted.cloned().collect()
    }

    /// Returns the received mails to an address.
    fn mails_to(&self, address: &str) -> Vec<String> {
        let mails = self.events_of("mail").into_iter();
        mails
            .filter(|mail| mail["recipients"][0] == address)
            .map(|mail| mail["source"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Returns the first mail to an address with this subject.
    fn mail(&self, address: &str, subject: &str) -> String {
        let subject = format!("Subject: {subject}\r\n");
        until(&format!("a mail: {subject}"), || {
            let mut mails = self.mails_to(address).into_iter();
            mails.rfind(|mail| mail.contains(&subject))
        })
    }

    /// Starts a server that sends through this mail server.
    fn sending(&self) -> TestServer {
        self.sending_with(&[])
    }

    fn sending_with(&self, flags: &[&str]) -> TestServer {
        let environment = [
            ("HELIOGRAPH_ALLOW_SANDBOX", "true"),
            ("HELIOGRAPH_SMTP_URL", self.url.as_str()),
            ("HELIOGRAPH_MAIL_FROM", "Heliograph <sms@example.org>"),
        ];
        TestServer::start(Place::new(), flags, &environment)
    }
}

/// Installs the mail server once.
fn set_up() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let setup = Command::new(root.join(".make/setup")).arg("node-peers").status().unwrap();
        assert!(setup.success(), "`.make/setup node-peers` failed");
    });
}

/// Returns the path of a page's link in a mail. `=` may break the lines of the mail.
fn link(mail: &str, page: &str) -> String {
    let text = mail.replace("=\r\n", "");
    let (_, rest) = text.split_once(page).unwrap_or_else(|| panic!("{text}"));
    let token: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
    assert_eq!(token.len(), 64, "{text}");
    token
}

/// Returns the mails to an address from `heliograph mail list`.
fn listed(place: &Place, recipient: &str) -> Vec<Value> {
    let list = place.json(&["mail", "list"]);
    let mails = list.as_array().unwrap().iter();
    let wanted = mails.filter(|mail| mail["recipient"] == recipient);
    wanted.cloned().collect()
}

/// Waits until the newest mail to an address is in this state, and returns the mail.
fn in_state(place: &Place, recipient: &str, state: &str) -> Value {
    until(&format!("a mail that is {state}"), || {
        let newest = listed(place, recipient).into_iter().next()?;
        (newest["state"] == state).then_some(newest)
    })
}

#[test]
fn a_customer_confirms_the_e_mail_and_resets_the_password_by_mail() {
    let mails = MailServer::start();
    let server = mails.sending();
    let address = "one@example.org";
    let mut browser = Browser::registered(&server, address);
    let create = [("category", "SMS"), ("sender", "")];
    let page = browser.post("create-application", &create);
    assert!(!location(&page).contains("/applications/"), "{page:?}");
    assert!(browser.get("/applications/new").text().contains("Confirm your email"));

    let mail = mails.mail(address, "Confirm your email");
    assert!(
        mail.contains("From: Heliograph <sms@example.org>") || mail.contains("sms@example.org")
    );
    assert!(mail.contains("Auto-Submitted: auto-generated"));
    let token = link(&mail, "/confirm/");
    // A scanner that opens the link confirms nothing.
    let page = browser.get(&format!("/confirm/{token}"));
    assert!(page.text().contains("Confirm"), "{}", page.text());
    assert!(browser.get("/applications/new").text().contains("Confirm your email"));
    browser.post("confirm", &[("token", &token)]);
    let made = browser.post("create-application", &create);
    assert!(location(&made).starts_with("/applications/"), "{made:?}");

    browser.post("forgot", &[("email", address)]);
    let token = link(&mails.mail(address, "Reset your password"), "/reset/");
    let fields = [("token", token.as_str()), ("new_password", "another long password")];
    assert_eq!(location(&browser.post("reset", &fields)), "/login?reset=1");
    mails.mail(address, "Your password was changed");
    // Neither the database nor the log contains the link.
    until("each mail is sent and its text deleted", || {
        let mails = listed(&server.place, address);
        mails.iter().all(|mail| mail["state"] == "sent" && mail["text"] == "").then_some(())
    });
    assert!(!server.log().contains(&token));
}

#[test]
fn a_change_of_the_e_mail_is_stopped_by_whoever_reads_the_mailbox() {
    let mails = MailServer::start();
    let server = mails.sending_with(&["--demo"]);
    let of_customer = |what: &str| server.ready["customer"][what].as_str().unwrap();
    let (address, secret) = (of_customer("email"), of_customer("password"));
    let mut thief = Browser::of_customer(&server);
    let asked = [("email", "thief@example.net"), ("password", secret)];
    assert_eq!(location(&thief.post("ask-email-change", &asked)), "/account?email-asked=1");
    let mail = mails.mail("thief@example.net", "Confirm your new email");
    let change = link(&mail, "/account/email/");
    let changed = thief.post("change-email", &[("token", &change)]);
    assert_eq!(location(&changed), "/account/email/done?confirmed=1");
    mails.mail("thief@example.net", "Your new email is confirmed");
    let waits = "becomes the email of your account at";
    assert!(thief.get("/account").text().contains(waits));

    // Opening the link needs no sign-in, runs no script, and changes nothing.
    let mail = mails.mail(address, "The email of your account will change tomorrow");
    let token = link(&mail, "/account/email/stop/");
    let mut owner = Browser::new(&server);
    let page = owner.get(&format!("/account/email/stop/{token}"));
    let form = [
        "action=\"/fn/stop-email-change\"",
        "method=\"post\"",
        &format!("name=\"token\" value=\"{token}\""),
        ">Stop the change<",
    ];
    for part in form {
        assert!(page.text().contains(part), "{part}: {}", page.text());
    }
    assert!(thief.get("/account").text().contains(waits));
    let stopped = owner.post("stop-email-change", &[("token", &token)]);
    assert_eq!(location(&stopped), "/account/email/stop/done?stopped=1");
    assert!(!thief.get("/account").text().contains(waits));
    let invalid = thief.post("change-email", &[("token", &change)]);
    assert!(!location(&invalid).contains("done"), "{invalid:?}");
}

#[test]
fn what_a_mail_server_refuses_cuts_or_leaves_open_is_tried_again_or_given_up() {
    let mails = MailServer::start();
    let server = mails.sending();
    for name in ["later", "never", "hang", "cut", "fine"] {
        Browser::registered(&server, &format!("{name}@example.org"));
    }
    let place = &server.place;
    mails.mail("fine@example.org", "Confirm your email");
    let later = in_state(place, "later@example.org", "queued");
    assert_eq!(later["attempts"], 1);
    assert!(later["last_error"].as_str().unwrap().contains("451"), "{later}");
    assert!(later["next_attempt_at"].is_string());
    let never = in_state(place, "never@example.org", "failed");
    assert!(never["last_error"].as_str().unwrap().contains("550"), "{never}");
    let cut = in_state(place, "cut@example.org", "queued");
    assert!(cut["last_error"].is_string(), "{cut}");
    assert_eq!(in_state(place, "hang@example.org", "sending")["attempts"], 1);
    let metrics = server.get_ops("/metrics").text();
    assert!(metrics.contains("heliograph_mails_failed 1"), "{metrics}");

    for mail in [&later, &cut] {
        let id = mail["id"].to_string();
        assert_eq!(place.json(&["mail", "retry", &id])["state"], "queued");
    }
    // The second attempt of each mail succeeds, and each mail is accepted only once.
    for name in ["later@example.org", "cut@example.org"] {
        in_state(place, name, "sent");
        assert_eq!(mails.mails_to(name).len(), 1);
    }
    let sent = listed(place, "later@example.org")[0]["id"].to_string();
    assert!(!place.run(&["mail", "retry", &sent]).status.success());
    // The hanging mail doesn't keep the process from stopping.
    server.stop();
}

#[test]
fn without_a_mail_server_mails_are_kept() {
    let server = TestServer::demo();
    let address = server.ready["customer"]["email"].as_str().unwrap();
    let mut browser = Browser::new(&server);
    browser.post("forgot", &[("email", address)]);
    let kept = in_state(&server.place, address, "kept");
    assert_eq!(kept["kind"], "reset");
    assert!(!kept["text"].as_str().unwrap().contains("/reset/"));
}
