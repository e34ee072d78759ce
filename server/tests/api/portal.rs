//! The portal in a browser without scripts, for cases that the browser tests don't cover.

use serde_json::{Value, json};
use service::{Clock, TotpSecret};

use crate::client::{Answer, bare, form};
use crate::harness::{Place, TestServer, until};
use crate::two_factor::{code, give_factor, half_signed_in};

pub const PASSWORD: &str = "correct horse battery";
const FORM: &str = "application/x-www-form-urlencoded";

/// A browser that keeps its cookies and doesn't follow redirects.
pub struct Browser<'a> {
    server: &'a TestServer,
    /// The session cookie.
    pub cookie: Option<String>,
    /// The cookie of a refused form that is shown again.
    form_cookie: Option<String>,
    /// The cookie of a form that waits for a sign-in.
    waiting_cookie: Option<String>,
    /// The cookie that makes this browser a known device.
    pub device: Option<String>,
    theme: Option<String>,
    /// The cookie with the browser's time zone.
    pub time_zone: Option<String>,
}

impl<'a> Browser<'a> {
    pub fn new(server: &'a TestServer) -> Self {
        Self {
            server,
            cookie: None,
            form_cookie: None,
            waiting_cookie: None,
            device: None,
            theme: None,
            time_zone: None,
        }
    }

    /// Registers a new account, which is signed in at once.
    pub fn registered(server: &'a TestServer, email: &str) -> Self {
        let mut browser = Self::new(server);
        let fields = [("email", email), ("new_password", PASSWORD), ("next", "")];
        let answer = browser.post("register", &fields);
        assert_eq!(location(&answer), "/applications");
        browser
    }

    /// Returns a browser in which the demo's customer is signed in.
    pub fn of_customer(server: &'a TestServer) -> Self {
        Self::of(server, "customer")
    }

    /// Returns a browser in which the demo's staff member is signed in.
    pub fn of_staff(server: &'a TestServer) -> Self {
        let mut browser = Self::of(server, "staff");
        let secret = server.ready["staff"]["totp_secret"].as_str().unwrap();
        let secret = TotpSecret::parse(secret).unwrap();
        let now = Clock::system().now();
        // Each code works once, so a second sign-in within half a minute needs the next code.
        let signed_in = [-30, 0, 30].iter().any(|seconds| {
            let code = secret.code(now.plus_ms(seconds * 1000));
            let answer = browser.post("sign-in-code", &[("code", &code), ("next", "")]);
            location(&answer) == "/support"
        });
        assert!(signed_in, "three members of staff signed in within half a minute");
        browser
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

    pub fn request(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let session = [&self.cookie, &self.device, &self.theme, &self.time_zone];
        let cookies = session.into_iter().chain([&self.form_cookie, &self.waiting_cookie]);
        let cookies: Vec<String> = cookies.flatten().cloned().collect();
        let cookies = cookies.join("; ");
        let mut headers = headers.to_vec();
        headers.push(("Cookie", &cookies));
        let length = body.len().to_string();
        if method == "POST" {
            headers.extend([("Content-Type", FORM), ("Content-Length", &length)]);
        }
        let mut bytes = bare(method, target, &headers);
        bytes.extend(body.as_bytes());
        let answer = self.server.exchange(&bytes);
        for set in answer.headers("set-cookie") {
            let cookie = set.split(';').next().map(str::to_owned);
            if set.starts_with("heliograph-form=") {
                self.form_cookie = cookie.filter(|_| !set.contains("Max-Age=0"));
            } else if set.starts_with("heliograph-signed-out-form=") {
                self.waiting_cookie = cookie.filter(|_| !set.contains("Max-Age=0"));
            } else if set.starts_with("heliograph-device=") {
                self.device = cookie;
            } else if set.starts_with("heliograph-theme=") {
                self.theme = cookie.filter(|_| !set.contains("Max-Age=0"));
            } else if set.starts_with("heliograph-time-zone=") {
                self.time_zone = cookie;
            } else {
                self.cookie = cookie;
            }
        }
        answer
    }

    pub fn get(&mut self, target: &str) -> Answer {
        self.request("GET", target, &[("Accept", "text/html")], "")
    }

    pub fn post(&mut self, function: &str, pairs: &[(&str, &str)]) -> Answer {
        self.post_from("http://test/applications", function, pairs)
    }

    /// Submits a form from a page.
    pub fn post_from(&mut self, page: &str, function: &str, pairs: &[(&str, &str)]) -> Answer {
        let headers = [("Accept", "text/html"), ("Origin", "http://test"), ("Referer", page)];
        self.request("POST", &format!("/fn/{function}"), &headers, &form(pairs))
    }

    /// Posts a form like a script and returns the answer.
    pub fn ask(&mut self, function: &str, pairs: &[(&str, &str)]) -> Answer {
        self.request("POST", &format!("/fn/{function}"), &[], &form(pairs))
    }

    /// Creates an application and returns its reference.
    pub fn application(&mut self) -> String {
        let answer = self.post("create-application", &[("category", "SMS"), ("sender", "")]);
        location(&answer).rsplit('/').next().unwrap().to_owned()
    }
}

pub fn location(answer: &Answer) -> &str {
    assert_eq!(answer.status, 302, "{}", answer.text());
    answer.header("location").unwrap()
}

/// Returns whether a page shows complete keys.
fn shows_keys(answer: &Answer, reference: &str) -> bool {
    let text = answer.text();
    text.contains(&format!("value=\"{reference}hk_"))
        && text.contains(&format!("value=\"{reference}ht_"))
}

#[test]
fn looking_around_leaves_no_session() {
    let server = TestServer::empty();
    for target in
        ["/", "/login", "/register", "/docs", "/no/such/page", "/applications", "/favicon.svg"]
    {
        let answer = Browser::new(&server).get(target);
        assert_eq!(answer.header("set-cookie"), None, "{target}");
        assert_eq!(answer.header("referrer-policy"), Some("same-origin"), "{target}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{target}");
        let policy = answer.header("content-security-policy").unwrap();
        for directive in ["default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"] {
            assert!(policy.contains(directive), "{target}: {policy}");
        }
        let kind = answer.header("content-type").unwrap_or("text/; charset");
        assert!(!kind.starts_with("text/") || kind.contains("charset"), "{kind}");
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
        ("/..//elsewhere.example", "/applications"),
        ("/reports/..//elsewhere.example", "/applications"),
        ("/.%2e/%2felsewhere.example", "/applications"),
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
    assert_eq!(location(&answer), "/login?next=%2Freports%3Fstatus%3Dfailed");
}

#[test]
fn a_head_has_little_of_a_long_address() {
    let server = TestServer::demo();
    let mut browser = Browser::new(&server);
    let query = "-_.".repeat(2_000);
    let answer = browser.get(&format!("/reports?number={query}"));
    assert_eq!(location(&answer), "/login?next=%2Freports");
    // A refused form leads back to its page, but not if the page's address is this long.
    let page = format!("http://test/login?x={query}");
    assert_eq!(location(&refused_sign_in(&mut browser, &page)), "/");
}

#[test]
fn a_session_id_from_before_is_not_signed_in() {
    let server = TestServer::empty();
    let mut browser = Browser::registered(&server, "first@example.org");
    let before = browser.cookie.clone();
    let fields = [("email", "first@example.org"), ("password", PASSWORD), ("next", "")];
    browser.post("sign-in", &fields);
    assert_ne!(browser.cookie, before);
    let mut old = Browser::new(&server);
    old.cookie = before;
    assert_eq!(location(&old.get("/applications")), "/login");
}

#[test]
fn a_page_shows_a_notice_or_a_problem() {
    let server = TestServer::empty();
    let mut browser = Browser::registered(&server, "first@example.org");
    let accepted = "/account?changed=1";
    let notice = "all other devices are signed out.";
    assert!(browser.get(accepted).text().contains(notice));
    let fields = [("password", "wrong"), ("new_password", "another horse")];
    let answer = browser.post_from(&format!("http://test{accepted}"), "change-password", &fields);
    // The page scrolls to the problem.
    let problem = "problem-change-password";
    assert_eq!(location(&answer), format!("{accepted}#{problem}"));
    let page = browser.get(accepted).text();
    assert!(page.contains(&format!("id=\"{problem}\"")), "{page}");
    assert!(page.contains("The password is wrong."), "{page}");
    assert!(!page.contains(notice), "{page}");
    assert!(browser.get(accepted).text().contains(notice));
}

#[test]
fn what_takes_two_members_of_staff_waits_on_a_page() {
    let settings = [("HELIOGRAPH_FOUR_EYES", "true")];
    let server = TestServer::start(Place::new(), &["--demo"], &settings);
    server.place.json(&["deposit", "add", "nobodys", "7", "--bank-id", "bank-1"]);
    let mut staff = Browser::of_staff(&server);
    let fields = [("bank_id", "bank-1"), ("reference", server.reference())];
    assert_eq!(location(&staff.post("assign-deposit", &fields)), "/support/approvals");
    let unmatched = server.place.json(&["deposit", "unmatched"]);
    assert_eq!(unmatched.as_array().unwrap().len(), 1);
    let page = staff.get("/support/approvals").text();
    let asked = format!("Assign the deposit bank-1 to the application {}", server.reference());
    assert!(page.contains(&asked), "{page}");
    // The person who made the request can only withdraw it.
    assert!(!page.contains("value=\"approve\""));
    let id = first_request(&page);
    let from = "http://test/support/approvals";
    let refused = staff.post_from(from, "decide-approval", &[("id", id), ("action", "approve")]);
    assert_eq!(location(&refused), "/support/approvals#problem-decide-approval");
    let page = staff.get("/support/approvals").text();
    assert!(page.contains("You asked for this yourself"), "{page}");
    let done = staff.post_from(from, "decide-approval", &[("id", id), ("action", "decline")]);
    let page = staff.get(location(&done)).text();
    assert!(page.contains("The request “Assign the deposit"), "{page}");
    assert!(page.contains("” is declined."), "{page}");
    let nothing = "Nothing waits for a second member of staff.";
    assert!(page.contains(nothing));

    staff.post("assign-deposit", &fields);
    let email = "second@example.org";
    Browser::registered(&server, email);
    let secret = give_factor(&server.place, email);
    server.place.json(&["account", "promote", email]);
    let (mut other, _) = half_signed_in(&server, email, "/support");
    other.post("sign-in-code", &[("code", &code(&secret, 0)), ("next", "")]);
    let page = other.get("/support/approvals").text();
    let id = first_request(&page);
    let fields = [("id", id), ("action", "approve")];
    other.post_from(from, "decide-approval", &fields);
    assert!(other.get("/support/approvals").text().contains(nothing));
    let unmatched = server.place.json(&["deposit", "unmatched"]);
    assert_eq!(unmatched.as_array().unwrap().len(), 0);
}

/// Returns the ID of the first request on the page of approvals.
fn first_request(page: &str) -> &str {
    let id = page.split("name=\"id\" value=\"").nth(1).unwrap();
    id.split('"').next().unwrap()
}

#[test]
fn a_theme_is_in_the_page_from_its_first_byte_on() {
    let server = TestServer::empty();
    let mut browser = Browser::registered(&server, "first@example.org");
    let is_shown = |browser: &mut Browser<'_>, page: &str, theme: &str| {
        let text = browser.get(page).text();
        let root = format!("<html lang=\"en\" data-theme=\"{theme}\"");
        assert!(text.contains(&root), "{page}: {}", &text[..200]);
    };
    is_shown(&mut browser, "/account", "system");
    let answer = browser.post("set-theme", &[("theme", "dark")]);
    assert_eq!(location(&answer), "/account?theme=1");
    for page in ["/account?theme=1", "/docs", "/no/such/page"] {
        is_shown(&mut browser, page, "dark");
    }
    // The theme stays in this browser after signing out. Signing in on another browser brings it
    // there.
    browser.post("sign-out", &[]);
    is_shown(&mut browser, "/login", "dark");
    let mut other = Browser::new(&server);
    is_shown(&mut other, "/login", "system");
    let fields = [("email", "first@example.org"), ("password", PASSWORD), ("next", "")];
    other.post("sign-in", &fields);
    is_shown(&mut other, "/applications", "dark");
    other.post("set-theme", &[("theme", "system")]);
    is_shown(&mut other, "/applications", "system");
    assert_eq!(other.theme, None);
    let answer = other.ask("set-theme", &[("theme", "pink")]);
    assert_eq!(answer.json()["cause"], "Unreadable");
}

#[test]
fn an_account_downloads_its_own_data() {
    let server = TestServer::demo();
    for (key, number) in
        [(server.key(), "57000001"), (server.key(), "57000002"), (server.test_key(), "57000003")]
    {
        let start = format!("/sms/verify/start/{key}?number={number}");
        server.exchange(&bare("POST", &start, &[("Content-Length", "0")])).is(200, 200, "");
    }
    let mut browser = Browser::of_customer(&server);
    assert!(browser.get("/account").text().contains("href=\"/account/billing\""));
    let details = [("name", "Acme Ltd"), ("address", "Main Street\nMaseru"), ("tax_number", "T-1")];
    browser.post("set-billing-details", &details);
    let answer = browser.get("/account/export.json");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let data = answer.json();
    let customer = &server.ready["customer"];
    assert_eq!(data["account"]["email"], customer["email"]);
    for (name, text) in details {
        assert_eq!(data["billing_details"][name], text);
    }
    assert_eq!(data["devices"][0]["this_device"], true);
    assert_eq!(data["security_events"][0]["kind"], "sign_in");
    let application = &data["applications"][0];
    assert_eq!(application["category"], "SMS");
    let verifications = application["verifications"].as_array().unwrap().iter();
    let verifications = verifications.map(|it| format!("{} {}", it["key"], it["number"]));
    let expected =
        ["\"live\" \"26657000001\"", "\"live\" \"26657000002\"", "\"test\" \"26657000003\""];
    assert_eq!(verifications.collect::<Vec<_>>(), expected);
    let deposit = application["statement"].as_array().unwrap().last();
    assert_eq!(deposit.unwrap()["kind"], "deposit");
    let text = answer.text();
    for secret in [&customer["password"], &server.ready["api_key"], &server.ready["test_key"]] {
        if let Some(secret) = secret.as_str() {
            assert!(!text.contains(secret), "{text}");
        }
    }
    assert!(!text.contains("argon2"), "{text}");

    let mut other = Browser::registered(&server, "other@example.org");
    let data = other.get("/account/export.json").json();
    assert_eq!(data["account"]["email"], "other@example.org");
    assert_eq!(data["applications"], serde_json::json!([]));
}

#[test]
fn an_account_downloads_and_erases_the_data_of_a_number() {
    let server = TestServer::demo();
    let message = [("number", "57000001"), ("message", "outbound secret")];
    let sent = server.send(server.key(), &message);
    let transid = sent.json()["transid"].as_str().unwrap().to_owned();
    let mut browser = Browser::of_customer(&server);
    let page = browser.get("/account/number?number=57000001").text();
    assert!(page.contains("can't be undone") && page.contains("Download"), "{page}");
    assert!(browser.get("/account/number?number=x").text().contains("number-alert"));
    let mut reader = Browser::of_customer(&server);
    let mut records =
        || reader.get("/account/number.json?number=57000001").json()["records"].clone();
    let is_final = |records: Value| (records[0]["status"] == "delivered").then_some(());
    until("the message is delivered", || is_final(records()));

    let place = &server.place;
    let path = place.path().join("number.json").display().to_string();
    let command = ["account", "export-number", "customer@example.org", "57000001", "--file", &path];
    place.json(&command);
    assert!(std::fs::read_to_string(&path).unwrap().contains("outbound secret"));
    place.refused(&command);
    let other = ["account", "erase-number", "57000002", "--all"];
    assert_eq!(place.json(&other)["messages"], 0);

    let number = ("number", "57000001");
    let mut other = Browser::registered(&server, "other@example.org");
    assert_eq!(other.get("/account/number.json?number=57000001").json()["records"], json!([]));
    let answer = browser.post("erase-number", &[number]);
    assert_eq!(location(&answer), "/account/number?erased=1");
    assert_eq!(records(), json!([]));
    let page = browser.get("/reports").text();
    assert!(page.contains("••••••••") && !page.contains("57000001"), "{page}");
    assert!(page.contains("erased"), "{page}");
    let page = browser.get(&format!("/reports/{transid}")).text();
    assert!(page.contains("The text was erased."), "{page}");
    let report = server.get(&format!("/sms/reports/{}/{transid}", server.key())).json();
    assert_eq!(report["report"]["message"], "");
    let file = server.get(&format!("/sms/reports/{}?format=csv", server.key())).text();
    assert!(file.contains(&transid) && !file.contains("secret"), "{file}");
}

#[test]
fn a_changed_password_renews_the_session_id() {
    let server = TestServer::empty();
    let mut browser = Browser::registered(&server, "first@example.org");
    let before = browser.cookie.clone();
    let fields = [("password", PASSWORD), ("new_password", "another horse battery")];
    let answer = browser.post("change-password", &fields);
    assert_eq!(location(&answer), "/account?changed=1");
    assert_ne!(browser.cookie, before);
    let page = browser.get("/devices").text();
    assert!(page.contains("This device"), "{page}");
    assert!(page.contains("Password changed"), "{page}");
    let mut old = Browser::new(&server);
    old.cookie = before;
    assert_eq!(location(&old.get("/devices")), "/login?next=%2Fdevices");
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
    assert!(!shows_keys(&browser.request("GET", &page, &ahead, ""), &reference));
    // Another browser of the same account doesn't get the keys.
    let mut other = Browser::new(&server);
    let fields = [("email", "keys@example.org"), ("password", PASSWORD), ("next", "")];
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
    // Following a link doesn't change anything either.
    let answer = browser.get("/fn/sign-out");
    assert_eq!(answer.status, 405);
    assert_eq!(browser.get("/applications").status, 200);
}

/// Submits a sign-in that is refused, from a page.
fn refused_sign_in(browser: &mut Browser<'_>, page: &str) -> Answer {
    let fields = [("email", "nobody@example.org"), ("password", "secret words"), ("next", "")];
    browser.post_from(page, "sign-in", &fields)
}

#[test]
fn a_refused_form_comes_back_once_and_never_in_an_address() {
    let server = TestServer::empty();
    let mut browser = Browser::new(&server);
    let answer = refused_sign_in(&mut browser, "http://test/login?next=%2Freports");
    assert_eq!(location(&answer), "/login?next=%2Freports#problem-sign-in");
    let cookie = answer.header("set-cookie").unwrap();
    for attribute in ["Max-Age=60", "HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    for typed in ["nobody", "secret"] {
        assert!(!cookie.contains(typed) && !cookie.contains(&hex::encode(typed)), "{cookie}");
    }

    // Neither another page nor a HEAD request for the page uses up the form.
    assert!(!browser.get("/login").text().contains("wrong"));
    browser.request("HEAD", "/login?next=%2Freports", &[], "");
    let kept = browser.form_cookie.clone();
    let page = browser.get("/login?next=%2Freports").text();
    assert!(page.contains("Email or password is wrong."), "{page}");
    assert!(page.contains("value=\"nobody@example.org\""), "{page}");
    assert!(!page.contains("secret words"), "{page}");
    assert_eq!(browser.form_cookie, None);
    let again = browser.get("/login?next=%2Freports").text();
    assert!(!again.contains("Email or password is wrong."), "{again}");

    // A manipulated cookie is ignored.
    let mut bent = kept.unwrap();
    let last = if bent.ends_with('0') { '1' } else { '0' };
    bent.pop();
    bent.push(last);
    browser.form_cookie = Some(bent);
    let page = browser.get("/login?next=%2Freports").text();
    assert!(!page.contains("Email or password is wrong."), "{page}");
}

#[test]
fn a_form_with_more_than_a_cookie_holds_comes_back_without_what_was_typed() {
    let server = TestServer::empty();
    let mut browser = Browser::new(&server);
    let long = "x".repeat(5_000);
    let fields = [("email", long.as_str()), ("password", "y"), ("next", "")];
    let answer = browser.post_from("http://test/login", "sign-in", &fields);
    assert!(answer.header("set-cookie").unwrap().len() < 4_096);
    let page = browser.get("/login").text();
    assert!(page.contains("Email or password is wrong."), "{page}");
    assert!(!page.contains("xxxx"), "{page}");
}

/// Signs an account in again, in a browser whose session has ended.
fn sign_in_again(browser: &mut Browser<'_>, email: &str, next: &str) {
    let fields = [("email", email), ("password", PASSWORD), ("next", next)];
    let answer = browser.post_from("http://test/login", "sign-in", &fields);
    assert_eq!(location(&answer), next);
}

#[test]
fn customers_are_told_how_to_reach_support() {
    let environment = [
        ("HELIOGRAPH_SUPPORT_CONTACT", "help@example.org, +266 2231 0000; <b>8:00</b>"),
        ("HELIOGRAPH_PRIVACY_URL", "https://example.org/privacy?a=1&b=2"),
    ];
    let server = TestServer::start(Place::new(), &["--demo"], &environment);
    let html = ("Accept", "text/html");
    let contact = "href=\"mailto:help@example.org\" rel=\"external\">help@example.org<";
    for path in ["/", "/login", "/applications/1", "/fn/sign-out", "/nothing/here"] {
        let page = Browser::new(&server).request("GET", path, &[html], "").text();
        assert!(page.contains(contact), "{path}: {page}");
        assert!(page.contains(", +266 2231 0000; &lt;b&gt;8:00&lt;/b&gt;"), "{path}: {page}");
        let link = "href=\"https://example.org/privacy?a=1&amp;b=2\" rel=\"external\">Privacy<";
        assert!(page.contains(link), "{path}: {page}");
    }
    let key = server.ready["test_key"].as_str().unwrap();
    let answer = server.send(key, &[("number", "00000503"), ("message", "Hi")]);
    answer.is(403, 503, "api_suspended");
    let message = answer.json()["message"].as_str().unwrap().to_owned();
    let said = "contact support: help@example.org, +266 2231 0000; <b>8:00</b>";
    assert!(message.ends_with(said), "{message}");
    // The demo shows payment instructions, but has no mail server.
    let home = Browser::of_staff(&server).get("/support").text();
    assert!(home.contains("<code>smtp_url<"), "{home}");
    assert!(!home.contains("<code>support_contact<"), "{home}");
    assert!(!home.contains("<code>payment_instructions<"), "{home}");
}

#[test]
fn without_a_mail_server_staff_make_the_reset_link_and_pages_say_so() {
    let server = TestServer::demo();
    let (mut customer, mut staff) = (Browser::of_customer(&server), Browser::of_staff(&server));
    let forgot = Browser::new(&server).get("/forgot").text();
    assert!(forgot.contains("so support makes the link"), "{forgot}");
    assert!(customer.get("/account").text().contains("This site sends no mail"));
    assert!(!customer.get("/applications").text().contains("Confirm your email"));

    let email = server.ready["customer"]["email"].as_str().unwrap();
    let waits = |staff: &mut Browser<'_>| {
        let page = staff.get("/support").text();
        let (_, row) = page.split_once("Reset links requested").unwrap();
        row.split("</tr>").next().unwrap().contains(">1<")
    };
    assert!(!waits(&mut staff));
    customer.post("forgot", &[("email", email)]);
    assert!(waits(&mut staff));
    let mails = staff.get("/support/mail").text();
    assert!(mails.contains("Reset your password"), "{mails}");
    assert!(!mails.contains(">Retry<"), "no server can take it: {mails}");
    server.place.json(&["account", "reset", email]);
    assert!(!waits(&mut staff));
}

#[test]
fn a_form_that_comes_signed_out_is_there_again_after_the_same_account_signed_in() {
    let server = TestServer::empty();
    Browser::registered(&server, "two@example.org");
    let mut browser = Browser::registered(&server, "one@example.org");
    let page = "/applications/new";
    let fields = [("category", "Electricity"), ("sender", "Typed")];
    let from = format!("http://test{page}");
    let is_filled = |page: &Answer| page.text().contains("value=\"Typed\"");

    // The form is submitted once by the browser and once by a script.
    for by_script in [false, true] {
        browser.cookie = None;
        let headers = [("Accept", "*/*"), ("Referer", from.as_str())];
        let answer = if by_script {
            browser.request("POST", "/fn/create-application", &headers, &form(&fields))
        } else {
            browser.post_from(&from, "create-application", &fields)
        };
        if by_script {
            assert_eq!((answer.status, &answer.json()["cause"]), (299, &"SignedOut".into()));
        } else {
            assert_eq!(location(&answer), "/login?next=%2Fapplications%2Fnew");
        }
        let cookie = answer.header("set-cookie").unwrap();
        for attribute in ["Max-Age=600", "HttpOnly", "SameSite=Lax", "Path=/"] {
            assert!(cookie.contains(attribute), "{cookie}");
        }
        assert!(!cookie.contains(&hex::encode("Typed")), "{cookie}");
        // A wrong password in between keeps the form.
        refused_sign_in(&mut browser, "http://test/login?next=%2Fapplications%2Fnew");
        assert!(!is_filled(&browser.get("/login?next=%2Fapplications%2Fnew")));
        sign_in_again(&mut browser, "one@example.org", page);
        let shown = browser.get(page);
        assert!(is_filled(&shown), "{}", shown.text());
        assert!(shown.text().contains("You were signed out before this form arrived"));
        assert!(
            shown.text().contains("<option value=\"Electricity\" selected"),
            "{}",
            shown.text()
        );
        assert!(!is_filled(&browser.get(page)), "it is back once");
    }

    // Another account that signs in there doesn't see the form. The first account doesn't see it
    // after that either.
    browser.cookie = None;
    browser.post_from(&from, "create-application", &fields);
    sign_in_again(&mut browser, "two@example.org", page);
    assert!(!is_filled(&browser.get(page)));
    assert_eq!(browser.waiting_cookie, None);
    sign_in_again(&mut browser, "one@example.org", page);
    assert!(!is_filled(&browser.get(page)));

    // Passwords are never kept.
    browser.cookie = None;
    let fields = [("password", PASSWORD), ("new_password", "another long one")];
    browser.post_from("http://test/account", "change-password", &fields);
    sign_in_again(&mut browser, "one@example.org", "/account");
    let shown = browser.get("/account").text();
    assert!(shown.contains("You were signed out before this form arrived"), "{shown}");
    for secret in [PASSWORD, "another long one"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[test]
fn a_refusal_reaches_scripts_in_the_answer() {
    let server = TestServer::empty();
    let fields = [("email", "nobody@example.org"), ("password", "secret words"), ("next", "")];
    let mut browser = Browser::new(&server);
    let answer = browser.request("POST", "/fn/sign-in", &[], &form(&fields));
    assert_eq!(
        (answer.status, &answer.json()["cause"]),
        (299, &serde_json::json!({"Refused": "WrongCredentials"}))
    );
    assert_eq!(browser.form_cookie, None);
}

#[test]
fn no_server_function_leads_to_another_site() {
    let server = TestServer::empty();
    let mut browser = Browser::registered(&server, "here@example.org");
    let reference = browser.application();
    let page = format!("/applications/{reference}");
    let settings = format!("{page}/settings?unconfirmed=1");
    let change = [("reference", reference.as_str()), ("lost_answer", "resend")];
    // If a function names no page, it leads back to the page of the form.
    let request = [("reference", reference.as_str())];
    let answer = browser.post_from(&format!("http://test{page}"), "request-activation", &request);
    assert_eq!(location(&answer), page);

    let fields = form(&change);
    for referer in [
        "https://elsewhere.example/page",
        "http://test@elsewhere.example/",
        "http://test.elsewhere.example/",
        "http://test//elsewhere.example/",
        "http://test/\\elsewhere.example/",
        "http://test/..//elsewhere.example/",
        "http://test/%2e%2e//elsewhere.example/",
        "//elsewhere.example/",
        "elsewhere.example",
        "",
    ] {
        let headers = [("Accept", "text/html"), ("Referer", referer)];
        let answer = browser.request("POST", "/fn/set-lost-answer", &headers, &fields);
        assert_eq!(location(&answer), settings, "{referer}");
        let answer = browser.request("POST", "/fn/change-password", &headers, "");
        assert_eq!(location(&answer), "/", "{referer}");
        for function in ["viewer", "account", "report?id=x", "no-such-function"] {
            let answer = browser.request("GET", &format!("/fn/{function}"), &headers, "");
            assert_eq!(answer.header("location"), None, "{function} {referer}");
        }
        // A browser that isn't signed in is redirected to the sign-in page, and from there to no
        // other site.
        let target = "/fn/set-lost-answer";
        let answer = Browser::new(&server).request("POST", target, &headers, &fields);
        assert_eq!(location(&answer), "/login", "{referer}");
    }
}

#[test]
fn a_problem_in_the_address_is_not_shown() {
    let server = TestServer::empty();
    // {"cause":"Call +1 555 0100 now"} and {"cause":"NotFound"} in base64.
    for problem in ["eyJjYXVzZSI6IkNhbGwgKzEgNTU1IDAxMDAgbm93In0=", "eyJjYXVzZSI6Ik5vdEZvdW5kIn0="]
    {
        let target = format!("/login?__path=%2Ffn%2Fsign-in&__err={problem}");
        let page = Browser::new(&server).get(&target);
        assert_eq!(page.status, 200);
        for sentence in ["555 0100", "There is nothing here.", "class=\"alert\""] {
            assert!(!page.text().contains(sentence), "{sentence}");
        }
    }
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
    let margins = Browser::new(&server).get("/support/margin.csv?from=2026-01-02");
    let next = location_of_redirect(&margins).replace("%2D", "-");
    assert!(next.ends_with("%3Ffrom%3D2026-01-02"), "{next}");
    let mut browser = Browser::of_customer(&server);

    let answer = browser.get(target);
    assert_eq!(answer.header("content-type"), Some("text/csv; charset=utf-8"));
    let text = answer.text();
    assert!(text.contains(",'=1+1,"), "{text}");
    assert!(!text.contains("58000002"), "{text}");
    let all = browser.get("/reports/messages.csv").text();
    assert!(all.contains("\"plain, \"\"quoted\"\"\""), "{all}");
    for (query, status) in [("status=lost", 400), ("cursor=lost", 400), ("application=000000", 404)]
    {
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
