//! The portal as a browser without scripts meets it, where the browser tests don't look.

use crate::client::{Answer, bare, form};
use crate::harness::TestServer;

const PASSWORD: &str = "correct horse battery";
const FORM: &str = "application/x-www-form-urlencoded";

/// A browser that keeps its cookie and follows nothing by itself.
pub struct Browser<'a> {
    server: &'a TestServer,
    pub cookie: Option<String>,
}

impl<'a> Browser<'a> {
    pub fn new(server: &'a TestServer) -> Self {
        Self {
            server,
            cookie: None,
        }
    }

    /// Registers a new account, which signs in at once.
    pub fn registered(server: &'a TestServer, email: &str) -> Self {
        let mut browser = Self::new(server);
        let fields = [("email", email), ("new_password", PASSWORD), ("next", "")];
        let answer = browser.post("register", &fields);
        assert_eq!(location(&answer), "/applications");
        browser
    }

    /// A browser in which the demo's customer is signed in.
    pub fn of_customer(server: &'a TestServer) -> Self {
        Self::of(server, "customer")
    }

    /// A browser in which the demo's member of staff is signed in.
    pub fn of_staff(server: &'a TestServer) -> Self {
        Self::of(server, "staff")
    }

    fn of(server: &'a TestServer, who: &str) -> Self {
        let mut browser = Self::new(server);
        let person = &server.ready[who];
        let fields = [
            ("email", person["email"].as_str().unwrap()),
            ("password", person["password"].as_str().unwrap()),
            ("next", ""),
        ];
        browser.post("sign-in", &fields);
        browser
    }

    fn request(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let cookie = self.cookie.clone().unwrap_or_default();
        let mut headers = headers.to_vec();
        headers.push(("Cookie", &cookie));
        let length = body.len().to_string();
        if method == "POST" {
            headers.extend([("Content-Type", FORM), ("Content-Length", &length)]);
        }
        let mut bytes = bare(method, target, &headers);
        bytes.extend(body.as_bytes());
        let answer = self.server.exchange(&bytes);
        if let Some(set) = answer.header("set-cookie") {
            self.cookie = set.split(';').next().map(str::to_owned);
        }
        answer
    }

    pub fn get(&mut self, target: &str) -> Answer {
        self.request("GET", target, &[("Accept", "text/html")], "")
    }

    pub fn post(&mut self, function: &str, pairs: &[(&str, &str)]) -> Answer {
        let headers = [
            ("Accept", "text/html"),
            ("Origin", "http://test"),
            ("Referer", "http://test/applications?__path=old&__err=old"),
        ];
        self.request("POST", &format!("/fn/{function}"), &headers, &form(pairs))
    }

    /// Creates an application; its reference.
    fn application(&mut self) -> String {
        let answer = self.post("create-application", &[("category", "SMS"), ("sender", "")]);
        location(&answer).rsplit('/').next().unwrap().to_owned()
    }
}

fn location(answer: &Answer) -> &str {
    assert_eq!(answer.status, 302, "{}", answer.text());
    answer.header("location").unwrap()
}

/// Whether a page shows whole keys.
fn shows_keys(answer: &Answer, reference: &str) -> bool {
    let text = answer.text();
    text.contains(&format!("value=\"{reference}hk_"))
        && text.contains(&format!("value=\"{reference}ht_"))
}

#[test]
fn looking_around_leaves_no_session() {
    let server = TestServer::empty();
    for target in [
        "/",
        "/login",
        "/register",
        "/docs",
        "/no/such/page",
        "/applications",
        "/favicon.svg",
    ] {
        let answer = Browser::new(&server).get(target);
        assert_eq!(answer.header("set-cookie"), None, "{target}");
        assert_eq!(
            answer.header("referrer-policy"),
            Some("same-origin"),
            "{target}"
        );
        assert_eq!(
            answer.header("x-content-type-options"),
            Some("nosniff"),
            "{target}"
        );
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.contains("frame-ancestors 'none'"),
            "{target}: {policy}"
        );
    }
}

#[test]
fn signing_in_leads_back_only_to_pages_of_this_site() {
    let server = TestServer::demo();
    let customer = &server.ready["customer"];
    for (next, leads_to) in [
        ("/reports?status=failed", "/reports?status=failed"),
        ("//elsewhere.example/", "/applications"),
        ("https://elsewhere.example/", "/applications"),
        ("/\\elsewhere.example", "/applications"),
        ("/a\r\nSet-Cookie: x=y", "/applications"),
    ] {
        let fields = [
            ("email", customer["email"].as_str().unwrap()),
            ("password", customer["password"].as_str().unwrap()),
            ("next", next),
        ];
        let answer = Browser::new(&server).post("sign-in", &fields);
        assert_eq!(location(&answer), leads_to, "{next:?}");
    }
    let answer = Browser::new(&server).get("/reports?status=failed");
    assert_eq!(
        location(&answer),
        "/login?next=%2Freports%3Fstatus%3Dfailed"
    );
}

#[test]
fn a_session_id_from_before_is_not_signed_in() {
    let server = TestServer::empty();
    let mut browser = Browser::registered(&server, "first@example.org");
    let before = browser.cookie.clone();
    let fields = [
        ("email", "first@example.org"),
        ("password", PASSWORD),
        ("next", ""),
    ];
    browser.post("sign-in", &fields);
    assert_ne!(browser.cookie, before);
    let mut old = Browser {
        server: &server,
        cookie: before,
    };
    assert_eq!(location(&old.get("/applications")), "/login");
}

#[test]
fn new_keys_are_shown_once_and_only_when_looked_at() {
    let server = TestServer::empty();
    let mut browser = Browser::registered(&server, "keys@example.org");
    let reference = browser.application();
    let page = format!("/applications/{reference}");

    let headers = [("Accept", "text/html")];
    assert_eq!(browser.request("HEAD", &page, &headers, "").status, 200);
    let ahead = [("Accept", "text/html"), ("Sec-Purpose", "prefetch")];
    assert!(!shows_keys(
        &browser.request("GET", &page, &ahead, ""),
        &reference
    ));
    // Another browser of the same account doesn't get them.
    let mut other = Browser::new(&server);
    let fields = [
        ("email", "keys@example.org"),
        ("password", PASSWORD),
        ("next", ""),
    ];
    other.post("sign-in", &fields);
    assert!(!shows_keys(&other.get(&page), &reference));

    let shown = browser.get(&page);
    assert!(shows_keys(&shown, &reference));
    assert_eq!(shown.header("cache-control"), Some("no-store"));
    assert!(!shows_keys(&browser.get(&page), &reference));
}

#[test]
fn forms_of_other_sites_are_not_acted_on() {
    let server = TestServer::empty();
    let mut browser = Browser::registered(&server, "guarded@example.org");
    for headers in [
        &[("Origin", "https://elsewhere.example")][..],
        &[("Origin", "null")],
        &[("Sec-Fetch-Site", "cross-site")],
        &[("Sec-Fetch-Site", "same-site"), ("Origin", "http://test")],
    ] {
        let answer = browser.request("POST", "/fn/sign-out", headers, "");
        assert_eq!(answer.status, 403, "{headers:?}");
    }
    assert_eq!(browser.get("/applications").status, 200);
    // Nor is anything changed by following a link.
    let answer = browser.get("/fn/sign-out");
    assert_eq!(answer.status, 405);
    assert_eq!(browser.get("/applications").status, 200);
}

#[test]
fn a_refusal_reaches_browsers_with_and_without_scripts() {
    let server = TestServer::empty();
    let fields = [
        ("email", "nobody@example.org"),
        ("password", "secret words"),
        ("next", ""),
    ];
    let mut browser = Browser::new(&server);
    let answer = browser.post("sign-in", &fields);
    let back = location(&answer).to_owned();
    assert_eq!(back.matches("__err=").count(), 1, "{back}");
    assert!(!back.contains("secret"), "{back}");

    let path = back.strip_prefix("http://test/applications").unwrap();
    let page = browser.get(&format!("/login{path}")).text();
    assert!(page.contains("E-mail or password is wrong."), "{page}");
    assert!(page.contains("value=\"nobody@example.org\""), "{page}");

    let answer = browser.request("POST", "/fn/sign-in", &[], &form(&fields));
    assert_eq!(
        (answer.status, &answer.json()["cause"]),
        (299, &serde_json::json!({"Refused": "WrongCredentials"}))
    );
}

#[test]
fn a_sentence_in_the_address_is_not_shown() {
    let server = TestServer::empty();
    // {"cause":"Call +1 555 0100 now"} in base 64: a cause that there isn't.
    let target = "/login?__path=%2Ffn%2Fsign-in&__err=eyJjYXVzZSI6IkNhbGwgKzEgNTU1IDAxMDAgbm93In0=";
    let page = Browser::new(&server).get(target);
    assert_eq!(page.status, 200);
    assert!(!page.text().contains("555 0100"));
}

#[test]
fn a_form_has_a_limit() {
    let server = TestServer::empty();
    let long = "x".repeat(100_000);
    let fields = [("email", long.as_str()), ("password", "y"), ("next", "")];
    let answer = Browser::new(&server).request("POST", "/fn/sign-in", &[], &form(&fields));
    assert_eq!(answer.status, 413);
}

#[test]
fn the_csv_has_the_filtered_messages_and_no_formulas() {
    let server = TestServer::demo();
    let key = server.key();
    for (number, text) in [("58000001", "=1+1"), ("58000002", "plain, \"quoted\"")] {
        let answer = server.send(key, &[("number", number), ("message", text)]);
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let target = "/reports/messages.csv?number=58000001";
    let answer = Browser::new(&server).get(target);
    assert!(location_of_redirect(&answer).starts_with("/login?next="));
    let mut browser = Browser::of_customer(&server);

    let answer = browser.get(target);
    assert_eq!(
        answer.header("content-type"),
        Some("text/csv; charset=utf-8")
    );
    let text = answer.text();
    assert!(text.contains(",'=1+1,"), "{text}");
    assert!(!text.contains("58000002"), "{text}");
    let all = browser.get("/reports/messages.csv").text();
    assert!(all.contains("\"plain, \"\"quoted\"\"\""), "{all}");
    for (query, status) in [
        ("status=lost", 400),
        ("cursor=lost", 400),
        ("application=000000", 404),
    ] {
        let target = format!("/reports/messages.csv?{query}");
        assert_eq!(browser.get(&target).status, status, "{query}");
    }
}

fn location_of_redirect(answer: &Answer) -> &str {
    assert!((302..=303).contains(&answer.status), "{}", answer.text());
    answer.header("location").unwrap()
}

#[test]
fn what_is_not_there_says_so() {
    let server = TestServer::empty();
    let mut browser = Browser::registered(&server, "lost@example.org");
    for target in [
        "/no/such/page",
        "/applications/999999",
        "/applications/x",
        "/reports/m_x",
        "/reports/b_0000000000000",
    ] {
        let answer = browser.get(target);
        assert_eq!(answer.status, 404, "{target}");
        assert!(answer.text().contains("Nothing here"), "{target}");
    }
}
