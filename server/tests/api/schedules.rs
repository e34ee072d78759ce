//! `sendat`, `validity`, `/sms/cancel`, and pausing batches over HTTP.

use serde_json::{Value, json};

use crate::client::{Answer, MULTIPART, bare, encode, form, multipart, posted};
use crate::confirmations::confirmed;
use crate::harness::{TestServer, until};
use crate::portal::{Browser, location};

const FORM: &str = "application/x-www-form-urlencoded";

/// Returns the time in RFC 3339, some seconds from now.
fn seconds_ahead(seconds: i64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let ms = i64::try_from(now.as_millis()).unwrap() + seconds * 1000;
    domain::Timestamp::from_unix_ms(ms).to_string()
}

fn scheduled(server: &TestServer, key: &str, sendat: &str) -> Answer {
    server.send(key, &[("number", "57000001"), ("message", "Hi"), ("sendat", sendat)])
}

fn post(server: &TestServer, path: &str, key: &str, pairs: &[(&str, &str)]) -> Answer {
    server.exchange(&posted(&format!("/sms/{path}/{key}"), FORM, form(pairs).as_bytes()))
}

fn uploaded(server: &TestServer, key: &str, sendat: &str) -> Value {
    let file = b"57000001,a\n57000001,b\n";
    let body = multipart(&[("bulksms", file), ("sendat", sendat.as_bytes())]);
    let answer = server.exchange(&posted(&format!("/sms/bulk/{key}"), MULTIPART, &body));
    answer.is(200, 200, "");
    answer.json()
}

fn report(server: &TestServer, key: &str, transid: &Value) -> Value {
    let answer = server.get(&format!("/sms/reports/{key}/{}", transid.as_str().unwrap()));
    answer.json()["report"].clone()
}

fn batch(server: &TestServer, key: &str, batchid: &Value) -> Value {
    let answer = server.get(&format!("/sms/batches/{key}/{}", batchid.as_str().unwrap()));
    answer.json()["batch"].clone()
}

/// The parameters of a request, and the status and the reason of its answer.
type Case<'a> = (&'a [(&'a str, &'a str)], u16, &'a str);

#[test]
fn a_scheduled_message_is_shown_and_sent_at_its_time() {
    let server = TestServer::demo();
    let key = server.key();
    let sendat = seconds_ahead(6);
    let sent = scheduled(&server, key, &sendat);
    sent.is(200, 200, "");
    assert_eq!(sent.json()["send_at"], json!(sendat));
    let found = report(&server, key, &sent.json()["transid"]);
    assert_eq!((&found["status"], &found["send_at"]), (&json!("scheduled"), &json!(sendat)));
    let file = uploaded(&server, key, &sendat);
    assert_eq!(file["send_at"], json!(sendat));
    let found = batch(&server, key, &file["batchid"]);
    assert_eq!((&found["status"], &found["send_at"]), (&json!("scheduled"), &json!(sendat)));
    assert_eq!(found["counts"]["scheduled"], json!(2));
    let listed = server.reports(key, "status=scheduled");
    assert_eq!(listed.len(), 1);
    until("all are delivered", || {
        let found = batch(&server, key, &file["batchid"]);
        (found["counts"]["delivered"] == json!(2)).then_some(())?;
        let found = report(&server, key, &sent.json()["transid"]);
        (found["status"] == json!("delivered")).then_some(())
    });
    for report in server.reports(key, "") {
        assert_eq!(report["send_at"], json!(sendat));
        let times = [&report["submitted_at"], &report["send_at"]].map(|at| at.as_str().unwrap());
        assert!(times[0] >= times[1], "{report}");
    }
}

#[test]
fn bad_times_are_refused_and_named() {
    let server = TestServer::demo();
    let (key, before) = (server.key(), server.balance(server.key()));
    let far = seconds_ahead(35 * 86_400 + 60);
    let past = seconds_ahead(-301);
    let bad = [
        "",
        "tomorrow",
        "1767225600",
        "2026-11-21",
        "2026-11-21T08:30:00",
        "2026-11-21T08:30Z",
        "2027-02-29T08:30:00Z",
        "2027-03-01T24:00:00Z",
        "2027-03-01T23:60:00Z",
        "2027-06-30T23:59:60Z",
        "2016-12-31T23:59:60Z",
        "2027-13-01T00:00:00Z",
        "2027-03-01T00:00:00+25:00",
        "+27000-03-01T00:00:00Z",
        "2027-03-01T00:00:00Z ",
        far.as_str(),
        past.as_str(),
    ];
    for sendat in bad {
        let refused = scheduled(&server, key, sendat);
        refused.is(400, 500, "invalid_parameter");
        let text = refused.json()["text"].as_str().unwrap().to_owned();
        assert!(text.contains("sendat") && text.contains("35 days"), "{sendat}: {text}");
        let file = multipart(&[("bulksms", b"57000001,a\n"), ("sendat", sendat.as_bytes())]);
        let refused = server.exchange(&posted(&format!("/sms/bulk/{key}"), MULTIPART, &file));
        refused.is(400, 500, "invalid_parameter");
    }
    for validity in ["", "0", "-1", "2881", "1.5", "+5", "99999999999999999999", "1h"] {
        let pairs = [("number", "57000001"), ("message", "Hi"), ("validity", validity)];
        let refused = server.send(key, &pairs);
        refused.is(400, 500, "invalid_parameter");
        let text = refused.json()["text"].as_str().unwrap().to_owned();
        assert!(text.contains("validity") && text.contains("2880"), "{validity}: {text}");
    }
    assert_eq!(server.balance(key), before);
    // RFC 3339 allows lower case, and an unescaped plus sign is decoded to a space.
    let soon = seconds_ahead(3600);
    let query = format!("number=57000001&message=Hi&sendat={}", soon.to_lowercase());
    server.get(&format!("/sms/send/{key}?{query}")).is(200, 200, "");
    let offset = soon.replace('Z', "+00:00");
    let query = format!("number=57000001&message=Hi&validity=2880&sendat={offset}");
    server.get(&format!("/sms/send/{key}?{query}")).is(200, 200, "");
    let query = query.replace(&offset, &encode(&offset));
    server.get(&format!("/sms/send/{key}?{query}")).is(200, 200, "");
}

#[test]
fn a_message_and_a_batch_are_cancelled() {
    let server = TestServer::demo();
    let (key, before) = (server.key(), server.balance(server.key()));
    let later = seconds_ahead(3600);
    let transid = scheduled(&server, key, &later).json()["transid"].as_str().unwrap().to_owned();
    let cancelled = post(&server, "cancel", key, &[("transid", &transid)]);
    cancelled.is(200, 200, "");
    let expected = json!({
        "code": 200, "message": "SUCCESS", "text": "SUCCESS", "cancelled": 1, "released": 0.05,
        "currency": "USD"
    });
    assert_eq!(cancelled.json(), expected);
    post(&server, "cancel", key, &[("transid", &transid)]).is(409, 500, "not_cancellable");
    assert_eq!(report(&server, key, &json!(transid))["status"], json!("cancelled"));
    let csv = server.get(&format!("/sms/reports/{key}?status=cancelled&format=csv")).text();
    assert!(csv.lines().count() == 2 && csv.contains(&transid), "{csv}");
    assert!(csv.contains(",cancelled,"), "{csv}");
    let batchid = uploaded(&server, key, &later)["batchid"].as_str().unwrap().to_owned();
    let query = format!("/sms/cancel/{key}?batchid={batchid}");
    let headers = [("Idempotency-Key", "one"), ("Content-Length", "0")];
    let first = server.exchange(&bare("POST", &query, &headers));
    first.is(200, 200, "");
    assert_eq!((&first.json()["cancelled"], &first.json()["released"]), (&json!(2), &json!(0.1)));
    let again = server.exchange(&bare("POST", &query, &headers));
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.json(), first.json());
    let found = batch(&server, key, &json!(batchid));
    assert_eq!((&found["status"], &found["counts"]["cancelled"]), (&json!("cancelled"), &json!(2)));
    assert_eq!(server.balance(key), before);
}

#[test]
fn bad_cancellations_are_refused() {
    let server = TestServer::demo();
    let (key, test_key) = (server.key(), server.test_key());
    let later = seconds_ahead(3600);
    let transid = scheduled(&server, key, &later).json()["transid"].as_str().unwrap().to_owned();
    let batchid = uploaded(&server, key, &later)["batchid"].as_str().unwrap().to_owned();
    let cases: [Case<'_>; 8] = [
        (&[], 400, "missing_parameter"),
        (&[("transid", &transid), ("batchid", &batchid)], 400, "invalid_parameter"),
        (&[("transid", &transid), ("transid", &transid)], 400, "duplicate_parameter"),
        (&[("transid", &transid), ("all", "1")], 400, "invalid_parameter"),
        (&[("transid", "")], 404, "not_found"),
        (&[("transid", &batchid)], 404, "not_found"),
        (&[("batchid", "b_0000000000000")], 404, "not_found"),
        (&[("transid", "m_0000000000000")], 404, "not_found"),
    ];
    for (pairs, status, reason) in cases {
        post(&server, "cancel", key, pairs).is(status, 500, reason);
    }
    for pair in [("transid", transid.as_str()), ("batchid", batchid.as_str())] {
        post(&server, "cancel", test_key, &[pair]).is(404, 500, "not_found");
    }
    post(&server, "cancel", "nonsense", &[("transid", &transid)]).is(401, 504, "api_invalid");
    server.get(&format!("/sms/cancel/{key}?transid={transid}")).is(405, 500, "method_not_allowed");
    assert_eq!(report(&server, key, &json!(transid))["status"], json!("scheduled"));
}

#[test]
fn a_batch_is_paused_and_resumed() {
    let server = TestServer::demo();
    let key = server.key();
    let file = uploaded(&server, key, &seconds_ahead(6));
    let batchid = file["batchid"].as_str().unwrap();
    let path = format!("/sms/batches/{key}/{batchid}");
    let change =
        |pairs: &[(&str, &str)]| server.exchange(&posted(&path, FORM, form(pairs).as_bytes()));
    change(&[]).is(400, 500, "missing_parameter");
    change(&[("pause", "1"), ("resume", "1")]).is(400, 500, "invalid_parameter");
    change(&[("pause", "0")]).is(400, 500, "invalid_parameter");
    change(&[("pause", "")]).is(400, 500, "invalid_parameter");
    for _ in 0..2 {
        let paused = change(&[("pause", "1")]);
        paused.is(200, 200, "");
        assert_eq!(paused.json()["batch"]["status"], json!("paused"));
    }
    let other = format!("/sms/batches/{}/{batchid}?pause=1", server.test_key());
    let headers = [("Content-Length", "0")];
    server.exchange(&bare("POST", &other, &headers)).is(404, 500, "not_found");
    let json = br#"{"resume": true}"#;
    let resumed = server.exchange(&posted(&path, "application/json", json));
    resumed.is(200, 200, "");
    assert_ne!(resumed.json()["batch"]["status"], json!("paused"));
    until("the batch is done", || {
        (batch(&server, key, &file["batchid"])["status"] == json!("done")).then_some(())
    });
    change(&[("pause", "1")]).is(409, 500, "batch_ended");
    change(&[("resume", "1")]).is(409, 500, "batch_ended");
    post(&server, "cancel", key, &[("batchid", batchid)]).is(409, 500, "not_cancellable");
}

/// Returns a page's HTML, without the markers for its scripts.
fn page(browser: &mut Browser, target: &str) -> String {
    let answer = browser.get(target);
    assert_eq!(answer.status, 200, "{target}: {}", answer.text());
    answer.text().replace("<!>", "").replace("&amp;", "&")
}

#[test]
fn the_portal_confirms_before_it_cancels_and_pauses() {
    let server = TestServer::demo();
    let (key, before) = (server.key(), server.balance(server.key()));
    let later = seconds_ahead(3600);
    let sent = scheduled(&server, key, &later).json();
    let transid = sent["transid"].as_str().unwrap();
    let file = uploaded(&server, key, &later);
    let batchid = file["batchid"].as_str().unwrap();
    let mut browser = Browser::of_customer(&server);
    let shown = page(&mut browser, &format!("/reports/{transid}"));
    assert!(shown.contains("Scheduled for (UTC)") && shown.contains("scheduled"), "{shown}");
    let address = format!("/reports/{transid}?confirm=cancel");
    assert!(shown.contains(&format!("href=\"{address}\"")), "{shown}");
    let shown = page(&mut browser, &address);
    assert!(shown.contains("1 message isn't sent, and 0.05 USD is released."), "{shown}");
    let answer = browser.post("stop-report", &[("id", transid), ("action", "cancel")]);
    assert_eq!(location(&answer), format!("/reports/{transid}?cancelled=1"));
    let shown = page(&mut browser, location(&answer));
    assert!(shown.contains("It is cancelled.") && shown.contains("cancelled in the portal"));
    assert!(!shown.contains("confirm=cancel"), "{shown}");
    // The list has a filter, and the chart a pattern, for such messages.
    let shown = page(&mut browser, "/reports?status=cancelled");
    for part in [transid, "<option value=\"cancelled\" selected", "url(#", "fill-cancelled"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }

    let shown = page(&mut browser, &format!("/reports/{batchid}?confirm=pause"));
    assert!(shown.contains("Up to 2 messages (0.10 USD) wait until you resume"), "{shown}");
    browser.post("stop-report", &[("id", batchid), ("action", "pause")]);
    assert_eq!(batch(&server, key, &file["batchid"])["status"], json!("paused"));
    let shown = page(&mut browser, &format!("/reports/{batchid}?confirm=resume"));
    assert!(shown.contains("Up to 2 messages (0.10 USD) can be submitted again."), "{shown}");
    browser.post("stop-report", &[("id", batchid), ("action", "resume")]);
    assert_eq!(batch(&server, key, &file["batchid"])["status"], json!("scheduled"));

    let application = format!("/applications/{}", server.reference());
    let shown = page(&mut browser, &application);
    let list = format!("/reports?application={}&status=scheduled&key=live", server.reference());
    assert!(shown.contains(&format!("href=\"{list}\">2 messages</a>")), "{shown}");
    let test = scheduled(&server, server.test_key(), &later).json()["transid"].clone();
    assert!(!page(&mut browser, &list).contains(test.as_str().unwrap()));
    assert!(shown.contains(" of them today"), "{shown}");
    a_scheduled_batch_is_counted_by_its_rows(&server, &mut browser, batchid);
    let shown = page(&mut browser, &format!("{application}?confirm=cancel-scheduled"));
    assert!(shown.contains("2 messages aren't sent, and their price is released."), "{shown}");
    scheduled(&server, key, &later).is(200, 200, "");
    let answer = browser.post("cancel-scheduled", &[("reference", server.reference())]);
    assert_eq!(location(&answer), format!("{application}?cancelled=1"));
    let shown = page(&mut browser, location(&answer));
    assert!(shown.contains("Everything that was scheduled is cancelled."), "{shown}");
    assert!(!shown.contains("confirm=cancel-scheduled"), "{shown}");
    let found = batch(&server, key, &file["batchid"]);
    assert_eq!((&found["status"], &found["counts"]["cancelled"]), (&json!("cancelled"), &json!(2)));
    assert_eq!(server.reports(key, "status=scheduled").len(), 0);
    assert_eq!(server.balance(key), before);
}

/// The application, the overview, the reports and the statement agree about a scheduled batch with
/// two rows at 0.05 each, which are no messages yet.
fn a_scheduled_batch_is_counted_by_its_rows(
    server: &TestServer,
    browser: &mut Browser<'_>,
    batchid: &str,
) {
    let reference = server.reference();
    let shown = page(browser, &format!("/applications/{reference}"));
    let words = "2 rows of scheduled batches are among them. 0.10 USD is reserved for these.";
    assert!(shown.contains(words), "{shown}");
    let shown = page(browser, "/applications");
    let (_, overview) = shown.split_once("<dt>Scheduled batches</dt>").unwrap();
    assert!(overview.contains("2 rows") && overview.contains("0.10 USD reserved"), "{shown}");
    let (_, today) = shown.split_once("<dt>Today</dt>").unwrap();
    let (today, _) = today.split_once("</dd>").unwrap();
    assert!(today.contains("1 message<") && today.contains("0.00 USD charged"), "{today}");
    let list = format!("/reports?application={reference}&status=scheduled");
    let shown = page(browser, &list);
    assert!(shown.contains(batchid) && shown.contains("become messages at the time"), "{shown}");
    assert!(!page(browser, "/reports?status=delivered").contains(batchid));
    let shown = page(browser, &format!("/applications/{reference}/statement"));
    assert!(shown.contains("charged as a whole on the day of its acceptance"), "{shown}");
    assert!(shown.contains(batchid), "{shown}");
}

#[test]
fn support_pauses_a_batch_and_the_owner_reads_why() {
    let server = TestServer::demo();
    let key = server.key();
    let file = uploaded(&server, key, &seconds_ahead(3600));
    let batchid = file["batchid"].as_str().unwrap();
    let mut staff = Browser::of_staff(&server);
    let visit = format!("/support/applications/{}", server.reference());
    let shown = page(&mut staff, &visit);
    assert!(shown.contains(batchid) && shown.contains("scheduled"), "{shown}");
    let subject = format!("{} {batchid}", server.reference());
    let pause = ("pause-batch", subject.as_str(), visit.as_str());
    let shown = confirmed(&mut staff, pause, &[("reason", "Too many complaints")]);
    for words in [&format!("Batch {batchid} is paused."), "Undo"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(shown.contains("Paused by support: Too many complaints"), "{shown}");
    assert_eq!(batch(&server, key, &file["batchid"])["status"], json!("paused"));

    let mut owner = Browser::of_customer(&server);
    let address = format!("/reports/{batchid}");
    let shown = page(&mut owner, &address);
    assert!(shown.contains("Paused by support") && shown.contains("Too many complaints"));
    assert!(shown.contains("confirm=cancel") && !shown.contains("confirm=resume"), "{shown}");
    let path = format!("/sms/batches/{key}/{batchid}");
    let resumed = server.exchange(&posted(&path, FORM, b"resume=1"));
    resumed.is(200, 200, "");
    assert_eq!(resumed.json()["batch"]["status"], json!("paused"));

    let shown = confirmed(&mut staff, ("resume-batch", &subject, &visit), &[]);
    assert!(shown.contains(&format!("Batch {batchid} is resumed.")), "{shown}");
    assert_eq!(batch(&server, key, &file["batchid"])["status"], json!("scheduled"));
    for subject in [batchid, server.reference()] {
        let audit = page(&mut staff, &format!("/support/audit?subject={subject}"));
        for sentence in ["Paused a batch", "Resumed a batch"] {
            let cell = format!("data-label=\"Action\" class=\"\">{sentence}<");
            assert!(audit.contains(&cell), "{audit}");
        }
    }
    let shown = page(&mut owner, &address);
    assert!(!shown.contains("Paused by support") && shown.contains("confirm=pause"), "{shown}");
}

#[test]
fn the_portal_lists_scheduled_messages_by_their_time() {
    let server = TestServer::demo();
    let key = server.key();
    let times = [7200, 600, 3600].map(seconds_ahead);
    let sent = times.each_ref().map(|at| scheduled(&server, key, at).json()["transid"].clone());
    let [last, first, second] = sent.each_ref().map(|id| id.as_str().unwrap());
    let mut browser = Browser::of_customer(&server);
    let of_application = format!("/reports?application={}&status=scheduled", server.reference());
    for address in ["/reports?status=scheduled", &of_application] {
        let shown = page(&mut browser, address);
        let place = |id: &str| shown.find(&format!("href=\"/reports/{id}\"")).unwrap();
        assert!(place(first) < place(second) && place(second) < place(last), "{shown}");
        assert!(shown.contains("The next due is first."), "{shown}");
        assert!(shown.contains(&format!("datetime=\"{}\"", times[0])), "{shown}");
    }
    // Other lists begin with the newest.
    for address in ["/reports", "/reports?status=scheduled&number=57000001"] {
        let shown = page(&mut browser, address);
        let place = |id: &str| shown.find(&format!("href=\"/reports/{id}\"")).unwrap();
        assert!(place(second) < place(first) && place(first) < place(last), "{shown}");
    }
    let refused = browser.get("/reports?status=scheduled&cursor=m_05arhf8he0000");
    assert_eq!(refused.status, 400, "{}", refused.text());
    // The API keeps its order.
    let listed = server.reports(key, "status=scheduled");
    let listed: Vec<_> = listed.iter().map(|report| report["transid"].clone()).collect();
    assert_eq!(listed, [json!(second), json!(first), json!(last)]);
}
