//! The HTTP carrier against a scripted upstream on a socket.

mod receipts;
mod upstream;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::ids::Shard;
use domain::records::ConnectionState;
use domain::{ApplicationId, MessageText, Number, Transid};
use service::{Claimed, Clock, Lease, SubmitOutcome};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;

use super::connection::HttpConnection;
use super::fault::HttpFaultKind::NoRule;
use super::fault::{HttpFault, HttpFaultKind};
use super::{HttpCarrier, HttpOutcome, HttpSubmit};
use crate::carrier::CarrierConnection;
use crate::config::Settings;
use crate::config::carriers::{CarrierKind, HttpSettings};
use upstream::{Act, Log, Seen, Upstream};

const QUERY: &str = "url = \"http://127.0.0.1:$PORT/send?to={number}&text={message}\"\n";
const RULES: &str = "[[carrier.answer]]\nhttp = 200\nfield = \"/status\"\nequals = 0\n\
    outcome = \"accepted\"\nmessage_id = \"/id\"\n[[carrier.answer]]\nhttp = \"2xx\"\n\
    field = \"/status\"\nequals = \"busy\"\noutcome = \"throttled\"\n[[carrier.answer]]\n\
    http = 200\nfield = \"/status\"\noutcome = \"refused\"\nerrors = { 17 = \"invalid_sender\", \
    \"number blocked\" = \"rejected_by_network\" }\n[[carrier.answer]]\nhttp = 503\n\
    outcome = \"retry\"\n";

/// Returns the settings of a carrier with these lines.
fn settings(lines: &str) -> Result<HttpSettings, String> {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("heliograph.toml");
    fs::write(folder.path().join("password"), "from \"file\"\n").unwrap();
    let lines = lines.replace("$FOLDER", folder.path().to_str().unwrap());
    let text = format!(
        "base_url = \"https://sms.example.org\"\n[[carrier]]\nname = \"up\"\nkind = \"http\"\n{lines}"
    );
    fs::write(&file, text).unwrap();
    let settings =
        Settings::load(Some(&file), std::iter::empty(), &[]).map_err(|error| error.to_string())?;
    let shown = format!("{settings:?} {:?}", settings.shown());
    for secret in ["from \\\"file", "hidden"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    match settings.carriers.list.into_iter().next().unwrap().kind {
        CarrierKind::Http(http) => Ok(*http),
        kind => panic!("not HTTP: {kind:?}"),
    }
}

fn carrier_at(port: u16, lines: &str) -> HttpCarrier {
    let lines = format!("{lines}{RULES}").replace("$PORT", &port.to_string());
    HttpCarrier::new(settings(&lines).unwrap()).unwrap()
}

fn submit(message: &str) -> HttpSubmit {
    HttpSubmit {
        not_after: Instant::now() + Duration::from_mins(1),
        transid: "m_1".to_owned(),
        application: "012345".to_owned(),
        number: "26657000001".to_owned(),
        sender: "Acme".to_owned(),
        message: message.to_owned(),
        validity_s: 3_600,
        is_secret: false,
    }
}

/// Sends one message, which the upstream accepts, and returns the request.
async fn one(lines: &str, message: &str) -> Seen {
    let upstream = Upstream::start(&[Act::Answer("200 OK", "{\"status\":0}")]).await;
    let outcome = carrier_at(upstream.port, lines).submit(&submit(message)).await.0;
    assert_eq!(outcome, HttpOutcome::Accepted { message_id: None });
    upstream.seen().remove(0)
}

/// Returns the outcome of a message if the upstream does `act`, and the number of requests.
async fn outcome_of(act: Act) -> (HttpOutcome, usize) {
    let upstream = Upstream::start(&[act]).await;
    let outcome = carrier_at(upstream.port, QUERY).submit(&submit("Hi")).await.0;
    (outcome, upstream.seen().len())
}

#[tokio::test]
async fn a_query_is_percent_encoded() {
    let seen = one(QUERY, "a&b=c {number} ж+\n%").await;
    assert_eq!(
        seen.first_line(),
        "GET /send?to=26657000001&text=a%26b%3Dc%20%7Bnumber%7D%20%D0%B6%2B%0A%25 HTTP/1.1"
    );
    assert_eq!(seen.body, "");
}

#[tokio::test]
async fn any_message_makes_valid_json() {
    let message = "say \"{sender}\" \\ \u{1} ж😀\n\"}";
    let lines = "url = \"http://127.0.0.1:$PORT/v1/{transid}\"\npassword_file = \
        \"$FOLDER/password\"\n\
        json = '{\"to\": [\"{number}\"], \"from\": {\"name\":\"{sender}\"}, \"text\": \"{message}\", \
        \"key\": \"{password}\", \"ttl\": {validity_s}}'\n\
        headers = { Authorization = \"Bearer {password}\", X-Id = \"{transid}-{application}\" }\n";
    let seen = one(lines, message).await;
    assert_eq!(seen.first_line(), "POST /v1/m_1 HTTP/1.1");
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(seen.header("authorization"), Some("Bearer from \"file\""));
    assert_eq!(seen.header("x-id"), Some("m_1-012345"));
    let body: serde_json::Value = serde_json::from_str(&seen.body).unwrap();
    let wanted = serde_json::json!({
        "to": ["26657000001"], "from": {"name": "Acme"}, "text": message, "key": "from \"file\"", "ttl": 3600,
    });
    assert_eq!(body, wanted);
}

#[tokio::test]
async fn a_form_is_percent_encoded() {
    let lines = "url = \"http://127.0.0.1:$PORT/\"\nmethod = \"PUT\"\n\
        form = \"to={number}&text={message}\"\n";
    let seen = one(lines, "a&b é").await;
    assert_eq!(seen.first_line(), "PUT / HTTP/1.1");
    let content_type = seen.header("content-type");
    assert_eq!(content_type, Some("application/x-www-form-urlencoded"));
    assert_eq!(seen.body, "to=26657000001&text=a%26b%20%C3%A9");
}

#[tokio::test]
async fn the_rules_decide_what_an_answer_means() {
    let accepted = |id: Option<&str>| HttpOutcome::Accepted { message_id: id.map(str::to_owned) };
    let reason = str::to_owned;
    let retry = |kind, code, text: &str| HttpOutcome::Retry {
        reason: reason(code),
        error: HttpFault::new(kind, text),
    };
    let held = |code, text: &str| HttpOutcome::Held {
        reason: reason(code),
        error: HttpFault::new(HttpFaultKind::AccessRefused, text),
    };
    let refused = |code, text: &str| HttpOutcome::Refused {
        reason: reason(code),
        error: HttpFault::new(HttpFaultKind::MessageRefused, text),
    };
    let throttled = |text: &str| HttpOutcome::Throttled {
        error: HttpFault::new(HttpFaultKind::Throttled, text),
        after: Duration::ZERO,
    };
    let unknown = |kind, status, quoted: &str| HttpOutcome::Unknown {
        error: HttpFault::new(
            kind,
            format!("HTTP status {status}, for which there is no rule{quoted}"),
        ),
    };
    for (status, body, wanted) in [
        ("200 OK", "{\"status\":0,\"id\":\"a-1\"}", accepted(Some("a-1"))),
        ("200 OK", "{\"status\":\"0\",\"id\":77}", accepted(Some("77"))),
        ("200 OK", "{\"status\":0,\"id\":null}", accepted(None)),
        ("200 OK", "{\"status\":\"busy\"}", throttled("HTTP status 200: {\"status\":\"busy\"}")),
        (
            "202 Accepted",
            "{\"status\":\"busy\"}",
            throttled("HTTP status 202: {\"status\":\"busy\"}"),
        ),
        (
            "200 OK",
            "{\"status\":17}",
            refused("invalid_sender_17", "HTTP status 200 17: {\"status\":17}"),
        ),
        ("200 OK", "{\"status\":18}", refused("refused_18", "HTTP status 200 18: {\"status\":18}")),
        (
            "200 OK",
            "{\"status\":18,\"to\":\"057-000-001\"}",
            refused("refused_18", "HTTP status 200 18"),
        ),
        (
            "200 OK",
            "{\"status\":\"number blocked\"}",
            refused(
                "rejected_by_network",
                "HTTP status 200 number blocked: {\"status\":\"number blocked\"}",
            ),
        ),
        (
            "200 OK",
            "{\"status\":\"a\\u0000b\"}",
            refused("refused", "HTTP status 200 ab: {\"status\":\"a\\u0000b\"}"),
        ),
        (
            "503 Busy",
            "<html>",
            retry(HttpFaultKind::MessageDeferred, "refused_503", "HTTP status 503: <html>"),
        ),
        // No rule matches these answers. The errors quote nothing of the message.
        ("200 OK", "no 057-000 001 here", unknown(NoRule, 200, "")),
        ("200 OK", "{\"text\":\"H\\u0069\"}", unknown(NoRule, 200, "")),
        ("200 OK", "", unknown(NoRule, 200, "")),
        ("200 OK", "OK", unknown(NoRule, 200, ": OK")),
        ("200 OK", "{\"status\":null}", unknown(NoRule, 200, ": {\"status\":null}")),
        ("202 Accepted", "{\"status\":0}", unknown(NoRule, 202, ": {\"status\":0}")),
        ("502 Bad Gateway", "<h1>", unknown(HttpFaultKind::ServerError, 502, ": <h1>")),
        ("502 Bad Gateway", "to 057-000-001", unknown(HttpFaultKind::ServerError, 502, "")),
        ("429 Too Many Requests", "", throttled("HTTP status 429, for which there is no rule")),
        (
            "401 Unauthorized",
            "{\"status\":0}",
            held("refused_401", "HTTP status 401, for which there is no rule: {\"status\":0}"),
        ),
        (
            "403 Forbidden",
            "no",
            held("refused_403", "HTTP status 403, for which there is no rule: no"),
        ),
        (
            "404 Not Found",
            "",
            retry(
                HttpFaultKind::UrlRefused,
                "refused_404",
                "HTTP status 404, for which there is no rule",
            ),
        ),
    ] {
        let (outcome, requests) = outcome_of(Act::Answer(status, body)).await;
        assert_eq!((outcome, requests), (wanted, 1), "{status} {body}");
    }
}

#[tokio::test]
async fn an_answer_is_kept_unless_its_body_may_be_private() {
    const TEXT: &str = "Your parcel \"7 & 8\" is at the depot, Lérôs street";
    let private = "the body isn't kept, because it may contain the number, the message or a secret";
    let lines = QUERY.replace("text={message}", "text={message}&key={password}");
    let lines = format!("{lines}password = \"hid/den\"\n");
    for (body, kept) in [
        ("", "; no body".to_owned()),
        ("<h1>\u{e9}</h1>", r": <h1>\xc3\xa9</h1>".to_owned()),
        ("your street isn't known", ": your street isn't known".to_owned()),
        (&TEXT[4..40], format!("; {private}")),
        ("text=Your+parcel+%227+%26+8%22+is+at+the+depot%2C", format!("; {private}")),
        ("<p>YOUR PARCEL &quot;7 &amp; 8&quot; IS AT</p>", format!("; {private}")),
        ("parcel \\\"7 \\u0026 8\\\" is at the depot", format!("; {private}")),
        ("\0i\0s\0 \0a\0t\0 \0t\0h\0e\0 \0d\0e\0p\0o\0t", format!("; {private}")),
        ("to 057-000-001", format!("; {private}")),
        ("wrong key: hid/den", format!("; {private}")),
        ("/send?key=hid%2Fden", format!("; {private}")),
    ] {
        let body: &'static str = Box::leak(body.to_owned().into_boxed_str());
        let upstream = Upstream::start(&[Act::Answer("200 OK", body)]).await;
        let (_, written) = carrier_at(upstream.port, &lines).submit(&submit(TEXT)).await;
        let text = written.unwrap().text;
        assert_eq!(text, format!("HTTP status 200{kept}"), "{body}");
    }
    // Any body may have a one-time code.
    let upstream = Upstream::start(&[Act::Answer("200 OK", "4711")]).await;
    let secret = HttpSubmit { is_secret: true, ..submit("Hi") };
    let (_, written) = carrier_at(upstream.port, QUERY).submit(&secret).await;
    assert_eq!(written.unwrap().text, format!("HTTP status 200; {private}"));
    // No excerpt tells how a body would quote a message in another script.
    let upstream = Upstream::start(&[Act::Answer("200 OK", "text=%D0%92%D0%B0%D1%88")]).await;
    let (_, written) = carrier_at(upstream.port, QUERY).submit(&submit("Ваш заказ 7")).await;
    assert_eq!(written.unwrap().text, format!("HTTP status 200; {private}"));
    // An ID is stored with the message.
    let upstream = Upstream::start(&[Act::Answer("200 OK", "{\"status\":0,\"id\":\"a\"}")]).await;
    assert_eq!(carrier_at(upstream.port, QUERY).submit(&submit("Hi")).await.1, None);
}

#[tokio::test]
async fn an_answer_may_be_a_text() {
    let upstream = Upstream::start(&[Act::Answer("200 OK", "OK\r\n")]).await;
    let lines = format!(
        "{QUERY}[[carrier.answer]]\nhttp = 200\nfield = \"\"\nequals = \"OK\"\n\
         outcome = \"accepted\"\n"
    );
    let outcome = carrier_at(upstream.port, &lines).submit(&submit("Hi")).await.0;
    assert_eq!(outcome, HttpOutcome::Accepted { message_id: None });
}

#[tokio::test]
async fn a_pattern_reads_the_id_and_the_code_of_a_text() {
    let lines = format!(
        "{QUERY}[[carrier.answer]]\nhttp = 200\npattern = '^OK:(?<id>[0-9]+):'\n\
         outcome = \"accepted\"\n[[carrier.answer]]\nhttp = 200\npattern = '^ERR:9\\b'\n\
         outcome = \"throttled\"\n[[carrier.answer]]\nhttp = 200\npattern = '^ERR:(?<code>\\w+)'\n\
         outcome = \"refused\"\nerrors = {{ 2 = \"invalid_destination\" }}\n[[carrier.answer]]\n\
         http = 200\nfield = \"/state\"\npattern = '^(?i:wait|busy)$'\noutcome = \"retry\"\n\
         [[carrier.answer]]\nhttp = 200\npattern = 'down'\noutcome = \"retry\"\n"
    );
    let refused = |reason: &str, error: &str| HttpOutcome::Refused {
        reason: reason.to_owned(),
        error: HttpFault::new(HttpFaultKind::MessageRefused, format!("HTTP status 200 {error}")),
    };
    let retry = |reason: &str, error: &str| HttpOutcome::Retry {
        reason: reason.to_owned(),
        error: HttpFault::new(HttpFaultKind::MessageDeferred, format!("HTTP status 200{error}")),
    };
    let accepted = HttpOutcome::Accepted { message_id: Some("0012".to_owned()) };
    let throttled = HttpOutcome::Throttled {
        error: HttpFault::new(HttpFaultKind::Throttled, "HTTP status 200: ERR:9 slow down"),
        after: Duration::ZERO,
    };
    let unknown = |quoted: &str| HttpOutcome::Unknown {
        error: HttpFault::new(
            NoRule,
            format!("HTTP status 200, for which there is no rule: {quoted}"),
        ),
    };
    for (body, wanted) in [
        ("OK:0012:26657000001\r\n", accepted),
        ("ERR:9 slow down", throttled),
        ("ERR:2 no such number", refused("invalid_destination_2", "2: ERR:2 no such number")),
        ("ERR:blacklisted 26657000001", refused("refused", "blacklisted")),
        ("{\"state\":\"Busy\"}", retry("refused_Busy", " Busy: {\"state\":\"Busy\"}")),
        ("{\"why\":\"down\"}", retry("refused_200", ": {\"why\":\"down\"}")),
        ("OK::", unknown("OK::")),
        ("{\"state\":\"busy now\"}", unknown("{\"state\":\"busy now\"}")),
    ] {
        let upstream = Upstream::start(&[Act::Answer("200 OK", body)]).await;
        let outcome = carrier_at(upstream.port, &lines).submit(&submit("Hi")).await.0;
        assert_eq!(outcome, wanted, "{body}");
    }
}

#[tokio::test]
async fn a_word_that_a_rule_has_itself_is_no_code() {
    let lines = format!(
        "{QUERY}[[carrier.answer]]\nhttp = 200\nfield = \"/state\"\nequals = \"refused\"\n\
         outcome = \"refused\"\n[[carrier.answer]]\nhttp = 200\nfield = \"/state\"\n\
         equals = \"17\"\noutcome = \"refused\"\n[[carrier.answer]]\nhttp = 200\n\
         field = \"/state\"\nequals = \"sender\"\noutcome = \"refused\"\n\
         errors = {{ sender = \"invalid_sender\" }}\n"
    );
    for (body, wanted, code) in [
        ("{\"state\":\"refused\",\"why\":\"spam\"}", "refused", ""),
        ("{\"state\":\"17\"}", "refused_17", " 17"),
        ("{\"state\":\"sender\"}", "invalid_sender", ""),
    ] {
        let upstream = Upstream::start(&[Act::Answer("200 OK", body)]).await;
        let outcome = carrier_at(upstream.port, &lines).submit(&submit("Hi")).await.0;
        let detail = format!("HTTP status 200{code}: {body}");
        let error = HttpFault::new(HttpFaultKind::MessageRefused, detail);
        assert_eq!(outcome, HttpOutcome::Refused { reason: wanted.to_owned(), error });
    }
}

#[tokio::test]
async fn the_message_id_may_be_our_own() {
    let upstream = Upstream::start(&[Act::Answer("202 Accepted", "0: Accepted")]).await;
    let lines = format!(
        "{QUERY}[[carrier.answer]]\nhttp = 202\noutcome = \"accepted\"\n\
         message_id = \"{{transid}}\"\n"
    );
    let outcome = carrier_at(upstream.port, &lines).submit(&submit("Hi")).await.0;
    assert_eq!(outcome, HttpOutcome::Accepted { message_id: Some("m_1".to_owned()) });
}

#[tokio::test]
async fn a_request_has_the_alphabet_the_receipt_url_and_basic_authentication() {
    let lines = "url = \"http://127.0.0.1:$PORT/\"\nusername = \"AC1\"\npassword = \"hidden\"\n\
        form = \"to=+{number}&text=a+{message}&type={alphabet}&hook={receipt_url}%3Fid\"\n\
        alphabet = { gsm7 = \"text\", unicode = \"uni code\" }\n\
        [carrier.receipt]\nsecret = \"hidden-0123456789\"\nmessage_id = \"id\"\n\
        status = \"status\"\ndelivered = \"1\"\n";
    for (message, text, alphabet) in
        [("é€", "%C3%A9%E2%82%AC", "text"), ("ж", "%D0%B6", "uni%20code")]
    {
        let seen = one(lines, message).await;
        // AC1:hidden
        assert_eq!(seen.header("authorization"), Some("Basic QUMxOmhpZGRlbg=="));
        assert_eq!(
            seen.body,
            format!(
                "to=%2B26657000001&text=a+{text}&type={alphabet}&hook=https%3A%2F%2Fsms.example.org\
                 %2Fcarriers%2Fup%2Fhidden-0123456789%3Fid"
            )
        );
    }
}

#[tokio::test]
async fn a_request_without_an_answer_is_unknown() {
    const HINT: &str = "if the port expects TLS, \"url\" must begin with https). ";
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{\"status\":0,";
    let alert_of_tls = "\u{15}\u{3}\u{1}\0\u{2}\u{2}F";
    for (act, kind, is_hinted) in [
        (Act::Cut, HttpFaultKind::ConnectionLost, true),
        (Act::CutAfter("HTTP/1.1 200 OK\r\nconte"), HttpFaultKind::ConnectionLost, true),
        (Act::CutAfter(cut), HttpFaultKind::AnswerCut, false),
        (Act::CutAfter("220 mail.example.org ready\r\n"), HttpFaultKind::NotHttp, true),
        (Act::CutAfter(alert_of_tls), HttpFaultKind::NotHttp, true),
    ] {
        let (outcome, requests) = outcome_of(act.clone()).await;
        let HttpOutcome::Unknown { error } = outcome else {
            panic!("{act:?}: {outcome:?}");
        };
        assert_eq!((error.kind, requests), (kind, 1), "{act:?}");
        assert_eq!(error.to_string().contains(HINT), is_hinted, "{error}");
    }
}

#[tokio::test]
async fn an_answer_that_leads_elsewhere_names_only_the_host() {
    let login = "302 Found\r\nlocation: https://u:p@login.example.org:8443/x?key=hidden";
    let upstream =
        Upstream::start(&[Act::Answer("303 See Other", ""), Act::Answer(login, "x")]).await;
    let carrier = carrier_at(upstream.port, QUERY);
    let own = format!("http://127.0.0.1:{}", upstream.port);
    for (status, address) in [(303, &*own), (302, "https://login.example.org:8443")] {
        let outcome = carrier.submit(&submit("Hi")).await.0;
        let detail =
            format!("HTTP status {status}, for which there is no rule; it leads to {address}");
        let error = HttpFault::new(HttpFaultKind::Redirected, detail);
        assert_eq!(outcome, HttpOutcome::Unknown { error });
    }
    assert_eq!(upstream.seen().len(), 2);
}

#[tokio::test]
async fn an_endless_answer_is_cut_off() {
    let body: &'static str = Box::leak("x".repeat(1_000_000).into_boxed_str());
    let (outcome, _) = outcome_of(Act::Answer("503 Busy", body)).await;
    assert!(matches!(outcome, HttpOutcome::Retry { .. }), "{outcome:?}");
}

#[tokio::test]
async fn an_answer_that_takes_too_long_is_unknown() {
    let upstream = Upstream::start(&[Act::Stall]).await;
    let lines = format!("{QUERY}{RULES}").replace("$PORT", &upstream.port.to_string());
    let mut settings = settings(&lines).unwrap();
    settings.timeout = Duration::from_secs(2);
    let outcome = HttpCarrier::new(settings).unwrap().submit(&submit("Hi")).await.0;
    let error = HttpFault::new(HttpFaultKind::Unanswered, "no answer in time");
    assert_eq!(outcome, HttpOutcome::Unknown { error });
    assert_eq!(upstream.seen().len(), 1);
}

#[tokio::test]
async fn without_a_connection_the_message_is_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let lines = "password = \"hidden\"\n\
        url = \"http://127.0.0.1:$PORT/?to={number}&text={message}&key={password}\"\n";
    let outcome = carrier_at(port, lines).submit(&submit("Hi")).await.0;
    let HttpOutcome::NotSent { error } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(error.kind, HttpFaultKind::NobodyListens, "{error:?}");
    assert!(!error.to_string().contains("hidden"), "{error}");
    let lines = QUERY.replace("http://127.0.0.1", "https://nowhere.invalid");
    let outcome = carrier_at(port, &lines).submit(&submit("Hi")).await.0;
    let HttpOutcome::NotSent { error } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(error.kind, HttpFaultKind::NameUnknown, "{error:?}");
}

#[tokio::test]
async fn without_tls_the_message_is_not_sent() {
    let lines = QUERY.replace("http:", "https:");
    // The upstream doesn't speak TLS. It closes each connection, or answers in cleartext.
    for answer in ["", "HTTP/1.1 400 Bad Request\r\n\r\n"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        let error = not_sent(port, &lines).await;
        assert_eq!(error.kind, HttpFaultKind::TlsNotSpoken, "{error}");
    }
}

#[tokio::test]
async fn after_a_connect_timeout_the_message_is_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    // The connection is accepted, but nothing answers the TLS handshake.
    let accepted = tokio::spawn(async move { listener.accept().await });
    let lines = format!("{QUERY}{RULES}").replace("http:", "https:");
    let mut settings = settings(&lines.replace("$PORT", &port.to_string())).unwrap();
    settings.timeout = Duration::from_secs(2);
    let carrier = HttpCarrier::new(settings).unwrap();
    let outcome = carrier.submit(&submit("Hi")).await.0;
    let is_timeout = |fault: &HttpFault| fault.kind == HttpFaultKind::ConnectTimeout;
    assert!(matches!(&outcome, HttpOutcome::NotSent { error } if is_timeout(error)), "{outcome:?}");
    accepted.await.unwrap().unwrap();
}

/// Returns the port of an upstream that speaks TLS, and the file with its certificate. Without an
/// authority, the certificate is self-signed.
async fn secure(
    folder: &TempDir,
    params: rcgen::CertificateParams,
    authority: Option<(rcgen::CertificateParams, rcgen::KeyPair)>,
) -> (u16, PathBuf) {
    let own = rcgen::KeyPair::generate().unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let signed = match authority {
        Some((of, by)) => params.signed_by(&own, &rcgen::Issuer::new(of, by)),
        None => params.self_signed(&own),
    };
    fs::write(&cert, signed.unwrap().pem()).unwrap();
    fs::write(&key, own.serialize_pem()).unwrap();
    let acceptor = crate::tls::acceptor(&crate::tls::TlsFiles { cert: cert.clone(), key }).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let log = Arc::new(Log::with([Act::Answer("200 OK", "{\"status\":0,\"id\":\"t\"}")]));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(stream) = acceptor.accept(stream).await {
                upstream::serve(stream, Arc::clone(&log)).await;
            }
        }
    });
    (port, cert)
}

fn certificate(name: &str) -> rcgen::CertificateParams {
    rcgen::CertificateParams::new([name.to_owned()]).unwrap()
}

/// Returns the fault of a message that isn't sent.
async fn not_sent(port: u16, lines: &str) -> HttpFault {
    match carrier_at(port, lines).submit(&submit("Hi")).await.0 {
        HttpOutcome::NotSent { error } => error,
        outcome => panic!("{outcome:?}"),
    }
}

#[tokio::test]
async fn a_certificate_for_another_name_or_time_is_named_as_such() {
    let mut expired = certificate("127.0.0.1");
    expired.not_after = rcgen::date_time_ymd(2021, 1, 1);
    let mut early = certificate("127.0.0.1");
    early.not_before = rcgen::date_time_ymd(4000, 1, 1);
    for (params, kind) in [
        (certificate("sms.example.org"), HttpFaultKind::CertificateName),
        (expired, HttpFaultKind::CertificateExpired),
        (early, HttpFaultKind::CertificateExpired),
    ] {
        let folder = TempDir::new().unwrap();
        let authority = rcgen::KeyPair::generate().unwrap();
        let mut of_authority = rcgen::CertificateParams::default();
        of_authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let file = folder.path().join("authority.pem");
        fs::write(&file, of_authority.self_signed(&authority).unwrap().pem()).unwrap();
        let (port, _) = secure(&folder, params, Some((of_authority, authority))).await;
        let url = QUERY.replace("http:", "https:");
        let trusting = format!("{url}tls_ca = \"{}\"\n", file.display());
        let error = not_sent(port, &trusting).await;
        assert_eq!(error.kind, kind, "{error}");
    }
}

/// With TLS 1.3, the client has finished its handshake when the upstream refuses it, so the message
/// may have been sent.
#[tokio::test]
async fn an_upstream_that_wants_a_certificate_of_ours_is_named_as_such_and_gets_it() {
    let folder = TempDir::new().unwrap();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (file, key_file) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    fs::write(&file, made.cert.pem()).unwrap();
    fs::write(&key_file, made.signing_key.serialize_pem()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut clients = rustls::RootCertStore::empty();
    clients.add(made.cert.der().clone()).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(clients.into(), provider.clone());
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let (stream, _) = listener.accept().await.unwrap();
        let refused = acceptor.accept(stream).into_fallible().await;
        let (_, mut stream) = refused.err().unwrap();
        // If unread bytes were left at the end, the alert might be lost.
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
        let (stream, _) = listener.accept().await.unwrap();
        let log = Log::with([Act::Answer("200 OK", "{\"status\":0,\"id\":\"t\"}")]);
        upstream::serve(acceptor.accept(stream).await.unwrap(), Arc::new(log)).await;
    });
    let url = QUERY.replace("http:", "https:");
    let trusting = format!("{url}tls_ca = \"{}\"\n", file.display());
    let outcome = carrier_at(port, &trusting).submit(&submit("Hi")).await.0;
    let HttpOutcome::Unknown { error } = outcome else { panic!("{outcome:?}") };
    assert_eq!(error.kind, HttpFaultKind::TlsRefused, "{error}");
    let files = (file.display(), key_file.display());
    let presenting = format!("{trusting}tls_cert = \"{}\"\ntls_key = \"{}\"\n", files.0, files.1);
    let outcome = carrier_at(port, &presenting).submit(&submit("Hi")).await.0;
    assert_eq!(outcome, HttpOutcome::Accepted { message_id: Some("t".to_owned()) });
}

#[tokio::test]
async fn only_the_named_certificates_are_trusted() {
    // `openssl req -x509` makes such a certificate: it claims to be an authority, and has no name
    // that TLS knows.
    let mut of_openssl = rcgen::CertificateParams::default();
    of_openssl.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let url = QUERY.replace("http:", "https:");
    for params in [certificate("127.0.0.1"), of_openssl] {
        let folder = TempDir::new().unwrap();
        let (port, cert) = secure(&folder, params, None).await;
        let error = not_sent(port, &url).await;
        assert_eq!(error.kind, HttpFaultKind::CertificateUntrusted, "{error}");
        let trusting = format!("{url}tls_ca = \"{}\"\n", cert.display());
        let outcome = carrier_at(port, &trusting).submit(&submit("Hi")).await.0;
        let message_id = Some("t".to_owned());
        assert_eq!(outcome, HttpOutcome::Accepted { message_id });
    }
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_loses_no_message() {
    const DONE: (&str, &str) = ("200 OK", "{\"status\":0}");
    let upstream = Upstream::start(&[
        Act::Answer(DONE.0, DONE.1),
        Act::AnswerAndClose(DONE.0, DONE.1),
        Act::Answer(DONE.0, DONE.1),
    ])
    .await;
    let carrier = carrier_at(upstream.port, QUERY);
    let accepted = HttpOutcome::Accepted { message_id: None };
    assert_eq!(carrier.submit(&submit("1")).await.0, accepted);
    assert_eq!(carrier.submit(&submit("2")).await.0, accepted);
    assert_eq!(upstream.opened(), 1, "the connection was kept");
    upstream.until_closed(1).await;
    // Lets the client notice the close before the third message.
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert_eq!(carrier.submit(&submit("3")).await.0, accepted);
    assert_eq!(upstream.seen().len(), 3, "each was sent once");
}

#[tokio::test]
async fn a_request_is_not_repeated_when_a_kept_connection_breaks() {
    let upstream = Upstream::start(&[Act::Answer("200 OK", "{\"status\":0}"), Act::Cut]).await;
    let carrier = carrier_at(upstream.port, QUERY);
    let outcome = carrier.submit(&submit("1")).await.0;
    assert_eq!(outcome, HttpOutcome::Accepted { message_id: None });
    let outcome = carrier.submit(&submit("2")).await.0;
    assert!(matches!(outcome, HttpOutcome::Unknown { .. }), "{outcome:?}");
    assert_eq!((upstream.seen().len(), upstream.opened()), (2, 1));
}

#[tokio::test]
async fn there_are_no_more_requests_at_a_time_than_connections() {
    let acts = [Act::Stall, Act::Stall, Act::Answer("200 OK", "{\"status\":0}")];
    let upstream = Upstream::start(&acts).await;
    let carrier = carrier_at(upstream.port, &format!("{QUERY}connections = 2\n"));
    let carrier = Arc::new(carrier);
    assert_eq!(carrier.places.available_permits(), 2);
    let spawn = || {
        let carrier = Arc::clone(&carrier);
        tokio::spawn(async move { carrier.submit(&submit("Hi")).await.0 })
    };
    let (first, second) = (spawn(), spawn());
    upstream.until_requested(2).await;
    assert_eq!(carrier.places.available_permits(), 0);
    let third = spawn();
    // Aborting the task drops the future, which frees its slot.
    first.abort();
    let outcome = third.await.unwrap();
    assert_eq!(outcome, HttpOutcome::Accepted { message_id: None });
    second.abort();
    assert_eq!(upstream.seen().len(), 3);
}

#[tokio::test]
async fn a_request_whose_turn_comes_too_late_is_not_sent() {
    let answer = Act::Answer("200 OK", "{\"status\":0}");
    let upstream = Upstream::start(&[answer.clone(), answer]).await;
    let lines = format!("{QUERY}connections = 9\nrate = 4\n");
    let carrier = carrier_at(upstream.port, &lines);
    let after =
        |ms| HttpSubmit { not_after: Instant::now() + Duration::from_millis(ms), ..submit("Hi") };
    let submits = [after(60_000), after(100), after(60_000)];
    let [first, second, third] = &submits;
    let ((first, _), (second, _), (third, _)) =
        tokio::join!(carrier.submit(first), carrier.submit(second), carrier.submit(third));
    let accepted = HttpOutcome::Accepted { message_id: None };
    assert_eq!((first, second, third), (accepted.clone(), HttpOutcome::TooLate, accepted));
    assert_eq!(upstream.seen().len(), 2);
}

#[tokio::test]
async fn the_window_is_what_the_rate_allows_within_a_lease() {
    for (rate, lease_s, taken) in
        [(0, 60, 900), (20, 60, 200), (20, 600, 200), (20, 12, 40), (1, 10, 1)]
    {
        let lines =
            format!("{QUERY}connections = 900\nrate = {rate}\n{RULES}").replace("$PORT", "1");
        let lease = Duration::from_secs(lease_s);
        let connection =
            HttpConnection::new(settings(&lines).unwrap(), Clock::system(), lease).unwrap();
        assert_eq!(connection.free(), taken, "{rate} per second, {lease_s} s");
    }
}

/// Other processes get their part of the rate, so this one gets a quarter.
#[tokio::test]
async fn the_rate_is_divided_among_processes() {
    let answer = Act::Answer("200 OK", "{\"status\":0}");
    let upstream = Upstream::start(&[answer.clone(), answer.clone(), answer]).await;
    let lines = format!("{QUERY}connections = 900\nrate = 40\n{RULES}");
    let lines = lines.replace("$PORT", &upstream.port.to_string());
    let minute = Duration::from_mins(1);
    let connection =
        HttpConnection::new(settings(&lines).unwrap(), Clock::system(), minute).unwrap();
    assert_eq!(connection.free(), 400);
    connection.paces().share_with(4);
    assert_eq!(connection.free(), 100);
    // One request in 25 s doesn't fit into the 10 s that a message may wait.
    connection.paces().share_with(1_000);
    assert_eq!(connection.free(), 1);
    let began = Instant::now();
    let carrier = carrier_at(upstream.port, &format!("{QUERY}rate = 40\n"));
    carrier.pace.share_with(4);
    for _ in 0..3 {
        carrier.submit(&submit("Hi")).await;
    }
    // Two intervals of 100 ms.
    let elapsed = began.elapsed();
    assert!(elapsed >= Duration::from_millis(200), "{elapsed:?}");
}

/// A claimed message.
fn message(id: i64, sender: &str) -> Claimed {
    Claimed {
        id: Transid(id),
        application_id: ApplicationId(1),
        reference: None,
        test: false,
        number: Number::parse("57000001").unwrap(),
        address: "26657000001".to_owned(),
        sender: sender.to_owned(),
        message: MessageText::parse("Hello".to_owned(), 1).unwrap(),
        code: None,
        submitted_segments: Vec::new(),
        expires_at: Clock::system().now().plus_ms(60_000),
    }
}

fn lease() -> Lease {
    let minute = Duration::from_mins(1);
    let until = Clock::system().now().plus_ms(60_000);
    let not_after = std::time::Instant::now() + minute;
    Lease { token: 1, shard: Shard::FIRST, until, not_after }
}

fn connection(upstream: &Upstream, more: &str) -> HttpConnection {
    let lines = format!("{QUERY}{more}{RULES}").replace("$PORT", &upstream.port.to_string());
    let minute = Duration::from_mins(1);
    HttpConnection::new(settings(&lines).unwrap(), Clock::system(), minute).unwrap()
}

#[tokio::test]
async fn each_sender_has_its_own_rate() {
    let answers = vec![Act::Answer("200 OK", "{\"status\":0}"); 12];
    let upstream = Upstream::start(&answers).await;
    let connection = connection(&upstream, "connections = 20\nsender_rate = 10\n");
    let of_acme = (0..14).map(|id| message(id, "Acme"));
    connection.submit(lease(), of_acme.chain([message(14, "Beta")]).collect());
    let mut results = Vec::new();
    while results.len() < 15 {
        results.extend(connection.report().await.unwrap().submitted);
    }
    results.sort_by_key(|result| result.id.0);
    // Eleven leave at once, because unused time of a second is saved up.
    for result in results {
        let (_, outcome) = &result.outcomes[0];
        let waits = matches!(outcome, SubmitOutcome::Later { after_ms: 1..=300 });
        assert_eq!(waits, (11..14).contains(&result.id.0), "{result:?}");
        assert!(waits || matches!(outcome, SubmitOutcome::Accepted { .. }), "{result:?}");
    }
    assert_eq!(upstream.seen().len(), 12);
}

/// Submits one message, and returns its outcome.
async fn exchange(connection: &HttpConnection) -> SubmitOutcome {
    connection.until_free().await;
    connection.submit(lease(), vec![message(1, "Acme")]);
    connection.report().await.unwrap().submitted.remove(0).outcomes.remove(0).1
}

#[tokio::test]
async fn a_pause_is_as_long_as_the_upstream_asks() {
    let upstream = Upstream::start(&[
        Act::Answer("429 Too Many Requests\r\nretry-after: 2", ""),
        Act::Answer("200 OK", "{\"status\":0}"),
    ])
    .await;
    let connection = connection(&upstream, "");
    let began = Instant::now();
    let outcome = exchange(&connection).await;
    assert!(matches!(outcome, SubmitOutcome::Throttled { .. }), "{outcome:?}");
    let state = connection.state();
    assert_eq!(state.state, ConnectionState::Waiting);
    let error = state.last_error.unwrap();
    assert!(error.contains("HTTP status 429") && error.contains("Retry-After: 2 s"), "{error}");
    let outcome = exchange(&connection).await;
    assert!(matches!(outcome, SubmitOutcome::Accepted { .. }), "{outcome:?}");
    assert!(began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(connection.state().state, ConnectionState::Bound);
}

/// The fields of answers, the bodies, and the keys in the settings can be echoed by an upstream.
#[tokio::test]
async fn neither_a_number_nor_a_key_of_the_settings_is_quoted() {
    let lines = format!(
        "headers = {{ X-Api-Key = \"literal-key-4711\" }}\n{QUERY}[[carrier.answer]]\nhttp = 200\n\
         field = \"/error\"\npattern = \"quota|key\"\noutcome = \"hold\"\n"
    );
    for (status, body, leak) in [
        ("200 OK", "{\"error\":\"quota exceeded for 26657000001\"}", "57000001"),
        ("200 OK", "{\"error\":\"wrong key literal-key-4711\"}", "4711"),
        ("403 Forbidden", "Invalid API key: literal-key-4711", "4711"),
    ] {
        let upstream = Upstream::start(&[Act::Answer(status, body)]).await;
        let outcome = carrier_at(upstream.port, &lines).submit(&submit("Hello world")).await.0;
        let HttpOutcome::Held { reason, error } = outcome else { panic!("{outcome:?}") };
        let said = format!("{reason} {error}");
        assert!(said.contains(&status[..3]) && !said.contains(leak), "{said}");
    }
}

#[tokio::test]
async fn customers_see_the_status_of_an_unclear_answer_and_nothing_else_of_it() {
    for status in ["200 OK", "302 Found", "502 Bad Gateway"] {
        let upstream = Upstream::start(&[Act::Answer(status, "<h1>gateway 7</h1>")]).await;
        let connection = connection(&upstream, "");
        let error = format!("HTTP status {}", &status[..3]);
        assert_eq!(exchange(&connection).await, SubmitOutcome::Unknown { error });
        let last_error = connection.state().last_error.unwrap_or_default();
        assert!(last_error.contains("for which there is no rule"), "{last_error}");
    }
}

#[tokio::test]
async fn an_account_that_is_refused_holds_messages_until_one_is_accepted() {
    let out_of_credit = Act::Answer("402 Payment Required", "no credit");
    let upstream = Upstream::start(&[
        out_of_credit.clone(),
        Act::Answer("200 OK", "{\"status\":17}"),
        out_of_credit,
        Act::Answer("200 OK", "{\"status\":0}"),
    ])
    .await;
    let rule = "[[carrier.answer]]\nhttp = 402\noutcome = \"hold\"\n";
    let connection = connection(&upstream, rule);
    let held = || connection.state().held.unwrap_or_default();
    let error = "refused_402".to_owned();
    assert_eq!(exchange(&connection).await, SubmitOutcome::Held { error: error.clone() });
    assert!(held().contains("(HTTP status 402: no credit). Ask the carrier"), "{}", held());
    // An upstream may check the number before the account.
    let refused = exchange(&connection).await;
    assert!(matches!(refused, SubmitOutcome::Refused { .. }), "{refused:?}");
    assert!(held().contains("has credit"), "{}", held());
    assert_eq!(connection.state().state, ConnectionState::Probing);
    assert_eq!(exchange(&connection).await, SubmitOutcome::Held { error });
    exchange(&connection).await;
    assert_eq!((held().as_str(), connection.state().state), ("", ConnectionState::Bound));
}

#[tokio::test]
async fn an_upstream_that_answers_nothing_is_noticed() {
    let answer = Act::Answer("200 OK", "{\"status\":0}");
    let upstream = Upstream::start(&[Act::Stall, answer.clone(), answer]).await;
    let connection = connection(&upstream, "connections = 2\n");
    assert_eq!(connection.state().unanswered_since, None);
    connection.submit(lease(), vec![message(1, "Acme")]);
    upstream.until_requested(1).await;
    let since = connection.state().unanswered_since.unwrap();
    // Another answer shows that the upstream works.
    connection.submit(lease(), vec![message(2, "Acme")]);
    assert_eq!(connection.report().await.unwrap().submitted[0].id, Transid(2));
    assert!(connection.state().unanswered_since.unwrap() > since);
}

#[test]
fn a_wrong_setting_of_a_carrier_is_named() {
    let fine = format!("{QUERY}{RULES}").replace("$PORT", "1");
    assert!(settings(&fine).is_ok());
    let refused = |text: &str, named: &str| {
        let error = settings(text).unwrap_err();
        assert!(error.contains(named), "{text}: {error}");
        assert!(error.contains("[[carrier]] up"), "{error}");
        assert!(!error.contains("hidden"), "{error}");
    };
    for (from, to, named) in [
        ("{number}", "{nubmer}", "url must be"),
        ("to={number}", "", "{number} must be in url"),
        ("&text={message}", "", "{message} must be in url"),
        ("http://127.0.0.1:1/", "127.0.0.1/", "url must be"),
        ("http:", "ftp:", "url must be"),
        ("127.0.0.1:1", "u:hidden@127.0.0.1", "url must be"),
        ("127.0.0.1:1/", "{number}.example.org/", "url must be"),
        ("127.0.0.1:1/", "a{number}.example.org/", "url must be"),
        ("/send", "/{password}", "{password} needs password"),
        ("\"accepted\"", "\"refused\"", "need the outcome accepted"),
        ("\"accepted\"\nmessage_id = \"/id\"", "\"retry\"", "no answer has the outcome accepted"),
        ("\"accepted\"", "\"taken\"", "answer.1: outcome"),
        ("http = 503", "http = 5", "answer.4: http"),
        ("http = 503", "http = \"5xy\"", "answer.4: http"),
        ("http = 503\n", "", "answer.4: http is missing"),
        ("/status", "status", "field must be a JSON pointer"),
        ("field = \"/status\"\nequals = 0", "equals = 0", "equals needs a field"),
        ("http = 503", "http = 503\nstatus = 1", "answer.4: unknown setting status"),
        ("equals = 0", "pattern = '('", "line 9, [[carrier]] up, answer.1: pattern must be"),
        ("equals = 0", "pattern = '\\w{900}'", "pattern must be"),
        ("equals = 0", "equals = 0\npattern = '0'", "pattern and equals"),
        ("equals = 0", "pattern = '(?<id>0)'", "can't both be set"),
        ("equals = \"busy\"", "pattern = '(?<id>0)'", "need the outcome accepted"),
        ("message_id = \"/id\"", "errors = { 1 = \"refused\" }", "errors needs the outcome"),
        ("message_id = \"/id\"", "message_id = \"{id}\"", "message_id must be"),
        ("\"invalid_sender\"", "\"bad_sender\"", "errors.17 must be one of no_route"),
        ("\"invalid_sender\"", "\"invalid_sender_1\"", "errors.17 must be one of no_route"),
        ("\"invalid_sender\"", "[1, [{}]]", "errors must be a table"),
    ] {
        refused(&fine.replace(from, to), named);
    }
    for (line, named) in [
        ("method = \"DELETE\"", "method"),
        ("method = \"GET\"\nform = \"x\"", "GET has no body"),
        ("json = \"{\"", "json must be JSON"),
        ("json = '\"{message}'", "json must be JSON"),
        ("json = '{message}'", "json must be JSON"),
        ("json = '[{sender}]'", "json must be JSON"),
        ("json = '1'\nform = ''", "can't both"),
        ("timeout = 0", "timeout"),
        ("connections = 0", "connections"),
        ("headers = { X = '{message}' }", "headers.X"),
        ("headers = { 'X Y' = '1' }", "headers.X Y"),
        ("headers = { X = \"a\\nb\" }", "headers.X"),
        ("headers = 1", "headers must be a table"),
        ("username = 'a'", "username needs password"),
        ("username = 'a:b'", "username must be"),
        ("headers = { X = '{alphabet}' }", "{alphabet} needs alphabet"),
        ("headers = { X = '{receipt_url}' }", "{receipt_url} needs base_url"),
        ("alphabet = { gsm7 = 0 }", "alphabet: unicode is missing"),
        ("alphabet = { gsm7 = 0, unicode = 8, ascii = 1 }", "unknown setting ascii"),
        ("tls_ca = '/nowhere.pem'", "tls_ca"),
        ("window = 1", "unknown setting window"),
        ("password_file = '/nowhere'", "/nowhere"),
    ] {
        refused(&format!("{line}\n{fine}"), named);
    }
}
