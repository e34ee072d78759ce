//! How much a free request leaves in the database. The figures are in the table in
//! `docs/SECURITY.md`.

use crate::client::form;
use crate::harness::{Place, TestServer, until};
use crate::portal::{Browser, PASSWORD};

/// The tables that grow with requests.
const TABLES: [&str; 17] = [
    "accounts",
    "applications",
    "api_keys",
    "sessions",
    "known_devices",
    "security_events",
    "password_resets",
    "outbox",
    "sender_requests",
    "audit",
    "api_calls",
    "messages",
    "message_timeline",
    "message_days",
    "message_quarters",
    "batches",
    "idempotency",
];

/// The number of requests per kind: [`FEW`] if each hashes a password, otherwise [`MANY`].
const FEW: usize = 200;
const MANY: usize = 1_000;
/// The number of reset links that one address may request per hour.
const RESETS: usize = 50;

/// Returns the rows of each table, and the bytes of the database.
fn size(server: &TestServer) -> ([i64; TABLES.len()], u64) {
    let copy = server.place.path().join("copy");
    let output = server.place.run(&["backup", copy.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let bytes = std::fs::metadata(&copy).unwrap().len();
    std::fs::remove_file(copy).unwrap();
    (TABLES.map(|table| server.place.rows(table)), bytes)
}

/// Makes `count` requests of a kind, waits until all messages are final, and prints how much each
/// request left. Panics if a request left more than `rows_max` rows.
fn measure(
    server: &TestServer,
    (what, count, rows_max): (&str, usize, i64),
    mut request: impl FnMut(usize),
) {
    let (rows_before, bytes_before) = size(server);
    for n in 0..count {
        request(n);
    }
    until("messages that are final", || {
        (server.place.rows("queue") == 0
            && server.place.rows("messages WHERE final_at IS NULL") == 0)
            .then_some(())
    });
    let (rows, bytes) = size(server);
    let count = i64::try_from(count).unwrap();
    let added = rows.iter().zip(rows_before).map(|(now, before)| now - before);
    let added: Vec<_> = TABLES.into_iter().zip(added).collect();
    let total: i64 = added.iter().map(|(_, rows)| rows).sum();
    let named: Vec<_> = (added.iter().filter(|(_, rows)| *rows > 0))
        .map(|(table, rows)| format!("{table} {rows}"))
        .collect();
    let each = bytes.saturating_sub(bytes_before) / count.cast_unsigned();
    println!("{what}: {each} bytes each; rows of {count}: {}", named.join(", "));
    // An application's last 50 calls are kept, and rows for new days and quarter-hours are added
    // now and then.
    assert!(total <= rows_max * count + 100, "{what}: {named:?}");
}

#[test]
#[ignore = "measures what the table of docs/SECURITY.md says, and takes a minute"]
fn what_a_free_request_costs() {
    let environment = [
        ("HELIOGRAPH_ALLOW_SANDBOX", "true"),
        ("HELIOGRAPH_SANDBOX_DELAY_MS", "0"),
        ("HELIOGRAPH_REGISTRATIONS_MAX", "100000"),
        ("HELIOGRAPH_SIGN_IN_FAILURES_MAX", "100000"),
        ("HELIOGRAPH_CHANGES_AT_ONCE", "1000000"),
    ];
    let server = &TestServer::start(Place::new(), &[], &environment);
    let mut browser = Browser::registered(server, "known@example.org");
    let reference = browser.application();
    let address = format!("/applications/{reference}");
    browser.get(&address);
    let key = {
        let other = server.place.application("keys@example.org", domain::Category::Sms, None);
        other.test
    };
    let key = key.expose();
    let email = |n: usize| format!("customer{n}@example.org");
    measure(server, ("registration", FEW, 5), |n| {
        Browser::registered(server, &email(n));
    });
    measure(server, ("sign-in", FEW, 3), |n| {
        let fields = [("email", &*email(n)), ("password", PASSWORD), ("next", "")];
        Browser::new(server).ask("sign-in", &fields);
    });
    measure(server, ("failed sign-in", FEW, 1), |n| {
        let fields = [("email", &*email(n)), ("password", "wrong"), ("next", "")];
        Browser::new(server).ask("sign-in", &fields);
    });
    measure(server, ("request for a reset link", RESETS, 2), |n| {
        Browser::new(server).ask("forgot", &[("email", &email(n))]);
    });
    let mut browsers: Vec<_> =
        (0..FEW).map(|n| Browser::registered(server, &format!("b{n}@example.org"))).collect();
    measure(server, ("new application", FEW, 4), |n| {
        browsers[n].application();
    });
    measure(server, ("change of what is mailed", MANY, 1), |n| {
        let mail = if n.is_multiple_of(2) { "deposit" } else { "application" };
        browser.ask("set-mails", &[(mail, "on")]);
    });
    measure(server, ("the same change again", MANY, 0), |_| {
        browser.ask("set-mails", &[("application", "on")]);
    });
    let send = |text: &str, more: &[(&str, &str)]| {
        let mut fields = vec![("number", "00000001"), ("message", text)];
        fields.extend(more);
        let path = format!("/sms/send/{key}?{}", form(&fields));
        assert_eq!(server.get(&path).status, 200);
    };
    measure(server, ("test message of one character", MANY, 1), |_| {
        send("x", &[]);
    });
    let longest = "\u{1F600}".repeat(1_600);
    measure(server, ("longest test message", MANY, 1), |_| {
        send(&longest, &[]);
    });
    measure(server, ("dry run", MANY, 0), |_| {
        send("x", &[("dryrun", "1")]);
    });
    let rows = "00000001\n".repeat(MANY);
    let parts = [("numbers", rows.as_bytes()), ("message", "Hello".as_bytes())];
    measure(server, ("upload of 1,000 numbers and one text", 1, 1_001), |_| {
        let answer = server.upload(key, &parts);
        assert_eq!(answer.status, 200, "{}", answer.text());
        server.done_batch(key, answer.json()["batchid"].as_str().unwrap());
    });
    measure(server, ("refused call with a key", MANY, 0), |_| {
        assert_eq!(server.send(key, &[("number", "1")]).status, 400);
    });
    measure(server, ("refused call without one", MANY, 0), |_| {
        assert_eq!(server.send("wrong", &[]).status, 401);
    });
    measure(server, ("receipt from a stranger", MANY, 0), |_| {
        assert_eq!(server.get("/carriers/acme/wrong/receipt?id=1").status, 404);
    });
}
