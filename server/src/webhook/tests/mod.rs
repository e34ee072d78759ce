//! Deliveries to a scripted endpoint on a socket.

mod receiver;

use std::net::SocketAddr;
use std::sync::Mutex;

use bytes::Bytes;
use rcgen::CertificateParams;
use reqwest::dns::{Addrs, Name, Resolving};
use service::WebhookSecret;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::*;
use receiver::{Act, Receiver};

/// Enough for each exchange that is to complete.
const LONG: Duration = Duration::from_mins(1);
/// For exchanges that are to time out.
const SHORT: Duration = Duration::from_millis(300);
const ID: &str = "e_01";
const TIMESTAMP: i64 = 1_614_265_330; // Thu, 25 Feb 2021 15:02:10 GMT
const BODY: &str = r#"{"id":"e_01","type":"webhook.test"}"#;
/// A part of each URL that no error may contain.
const HIDDEN: &str = "T0ken";

/// Resolves each name to the same addresses, and counts the lookups.
#[derive(Clone, Default)]
struct Fixed {
    addresses: Vec<SocketAddr>,
    names: Arc<Mutex<Vec<String>>>,
}

impl Resolve for Fixed {
    fn resolve(&self, name: Name) -> Resolving {
        self.names.lock().unwrap().push(name.as_str().to_owned());
        let addresses = self.addresses.clone();
        Box::pin(async move { Ok(Box::new(addresses.into_iter()) as Addrs) })
    }
}

/// Never finds an answer.
struct Silent;

impl Resolve for Silent {
    fn resolve(&self, _: Name) -> Resolving {
        Box::pin(std::future::pending())
    }
}

fn rules(networks: &[&str]) -> EndpointRules {
    let networks = networks.iter().map(|network| network.parse().unwrap()).collect();
    EndpointRules { allow_http: true, networks }
}

fn local_rules() -> EndpointRules {
    rules(&["127.0.0.0/8", "::1/128"])
}

fn client(rules: EndpointRules, timeout: Duration) -> WebhookClient {
    let resolver = DnsResolver::new().unwrap();
    WebhookClient::with(rules, tls::client(None).unwrap(), timeout, resolver).unwrap()
}

fn secrets(bytes: &[u8]) -> Vec<WebhookSecret> {
    bytes.iter().map(|byte| WebhookSecret::new([*byte; 24])).collect()
}

async fn deliver(client: &WebhookClient, url: &str) -> Outcome {
    let url = &format!("{url}?key={HIDDEN}");
    let secrets = &secrets(&[1]);
    let (event_id, timestamp, body) = (ID, TIMESTAMP, Bytes::from_static(BODY.as_bytes()));
    let outcome = client.deliver(&Delivery { url, event_id, timestamp, body, secrets }).await;
    let success = outcome.status.is_some_and(|status| (200..300).contains(&status));
    assert_eq!(outcome.is_success(), success, "{outcome:?}");
    let error = outcome.error.as_deref().unwrap_or(".");
    assert!(error.ends_with('.') && !error.contains(HIDDEN), "{error}");
    outcome
}

/// Returns the outcome of one delivery to an endpoint that reacts like this.
async fn outcome_of(act: Act) -> Outcome {
    exchange(LONG, act).await.0
}

/// Returns the outcome of one delivery, after the client has closed the connection by itself.
async fn outcome_of_cut(timeout: Duration, act: Act) -> Outcome {
    let (outcome, client, receiver) = exchange(timeout, act).await;
    receiver.until_closed(1).await;
    drop(client);
    outcome
}

async fn exchange(timeout: Duration, act: Act) -> (Outcome, WebhookClient, Receiver) {
    let receiver = Receiver::start([act]).await;
    let client = client(local_rules(), timeout);
    let outcome = deliver(&client, &receiver.url()).await;
    assert_eq!((receiver.seen().len(), receiver.opened()), (1, 1), "one attempt only");
    (outcome, client, receiver)
}

fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{headers}\r\n");
    [head.as_bytes(), body].concat()
}

fn error_of(outcome: &Outcome) -> &str {
    outcome.error.as_deref().unwrap_or_default()
}

#[tokio::test]
async fn the_request_is_signed_as_standard_webhooks_says() {
    let receiver = Receiver::start([Act::Answer(answer("200 OK", "", b"thanks"))]).await;
    let secrets = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", &secrets(&[0xff])[0].expose()]
        .map(|text| text.parse().unwrap());
    let delivery = Delivery {
        url: &receiver.url(),
        event_id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp: TIMESTAMP,
        body: Bytes::from_static(br#"{"test": 2432232314}"#),
        secrets: &secrets,
    };
    let outcome = client(local_rules(), LONG).deliver(&delivery).await;
    assert!(outcome.is_success());
    assert_eq!((outcome.status, outcome.error), (Some(200), None));
    assert_eq!((outcome.retry_after, outcome.answer.as_str()), (None, "thanks"));

    let [seen] = &receiver.seen()[..] else { panic!() };
    assert!(seen.head.starts_with("POST /hook HTTP/1.1\r\n"), "{}", seen.head);
    assert_eq!(seen.body, br#"{"test": 2432232314}"#);
    let agent = format!("Heliograph/{}", env!("CARGO_PKG_VERSION"));
    let host = receiver.address.to_string();
    // The first signature is the published example. Python's hmac module computed the second.
    let signatures = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= \
                      v1,eL/gpXcambmugWW0fEr6dJPrV+sLfbAEh5miaI4XLrA=";
    for (name, value) in [
        ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
        ("webhook-timestamp", "1614265330"),
        ("webhook-signature", signatures),
        ("content-type", "application/json"),
        ("user-agent", &agent),
        ("host", &host),
    ] {
        assert_eq!(seen.header(name), Some(value), "{name}");
    }
    assert_eq!(seen.header("accept-encoding"), None);
}

#[tokio::test]
async fn nothing_is_sent_unsigned() {
    let receiver = Receiver::start([]).await;
    let client = client(local_rules(), LONG);
    let one = secrets(&[1]);
    for (event_id, secrets) in [(ID, &[][..]), ("e_\r\nX: y", &one)] {
        let (url, timestamp, body) = (&receiver.url(), TIMESTAMP, Bytes::new());
        let outcome = client.deliver(&Delivery { url, event_id, timestamp, body, secrets }).await;
        assert!(!outcome.is_success() && outcome.status.is_none(), "{outcome:?}");
    }
    assert_eq!(receiver.opened(), 0);
}

#[tokio::test]
async fn any_2xx_is_success() {
    for status in [200, 201, 202, 204, 226, 299] {
        let head = format!("HTTP/1.1 {status} Fine\r\n\r\n");
        let outcome = outcome_of(Act::AnswerAndClose(head.into_bytes())).await;
        assert!(outcome.is_success(), "{outcome:?}");
        assert_eq!(outcome.status, Some(status));
    }
}

#[tokio::test]
async fn every_other_status_is_a_failure() {
    for status in [300, 304, 400, 404, 410, 429, 500, 503, 599, 600, 999] {
        let head = answer(&format!("{status} Status"), "", b"no");
        let outcome = outcome_of(Act::AnswerAndClose(head)).await;
        assert_eq!(outcome.status, Some(status));
        assert!(error_of(&outcome).contains(&status.to_string()), "{outcome:?}");
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let other = Receiver::start([]).await;
    for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"] {
        let location = format!("Location: {}\r\n", other.url());
        let outcome = outcome_of(Act::Answer(answer(status, &location, b""))).await;
        assert!(error_of(&outcome).contains("Redirects aren't followed"), "{outcome:?}");
    }
    assert_eq!(other.opened(), 0);
}

#[tokio::test]
async fn retry_after_is_read_and_capped() {
    for (value, seconds) in [
        ("120", Some(120)),
        ("86400", Some(3600)),
        ("Thu, 25 Feb 2021 15:03:10 GMT", Some(60)),
        ("later", None),
        ("\u{e9}", None),
    ] {
        let head = answer("503 Busy", &format!("Retry-After: {value}\r\n"), b"");
        let outcome = outcome_of(Act::Answer(head)).await;
        assert_eq!(outcome.retry_after, seconds.map(Duration::from_secs), "{value}");
    }
}

#[tokio::test]
async fn an_answer_is_kept_as_text() {
    let outcome = outcome_of(Act::Answer(answer("500 Error", "", b"a\0b\xffc"))).await;
    assert_eq!(outcome.answer, "a\u{fffd}b\u{fffd}c");
    let outcome = outcome_of(Act::Answer(answer("200 OK", "", &[b'x'; 5000]))).await;
    assert_eq!(outcome.answer, "x".repeat(1024));
}

#[tokio::test]
async fn a_gzipped_answer_is_not_decoded() {
    // The beginning of a gzip file.
    let body = b"\x1f\x8b\x08\x01bomb";
    let head = answer("200 OK", "Content-Encoding: gzip\r\n", body);
    let outcome = outcome_of(Act::Answer(head)).await;
    assert_eq!(outcome.answer, "\u{1f}\u{fffd}\u{8}\u{1}bomb");
    assert!(outcome.is_success());
}

#[tokio::test]
async fn an_endless_answer_is_cut_and_judged_by_its_status() {
    let endless = [
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000000000\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n",
        "HTTP/1.0 200 OK\r\n\r\n",
    ];
    for head in endless {
        let outcome = outcome_of_cut(LONG, Act::Repeat(head, vec![b'x'; 4096])).await;
        assert!(outcome.is_success(), "{outcome:?}");
        assert_eq!(outcome.answer, "x".repeat(1024));
    }
    let chunked = "HTTP/1.1 500 Error\r\nTransfer-Encoding: chunked\r\n\r\n";
    let outcome = outcome_of_cut(LONG, Act::Repeat(chunked, b"1\r\ny\r\n".repeat(1000))).await;
    assert_eq!((outcome.status, outcome.answer), (Some(500), "y".repeat(1024)));
}

#[tokio::test]
async fn a_head_that_comes_by_the_byte_times_out() {
    let outcome = outcome_of_cut(SHORT, Act::Drip("HTTP/1.1 200 OK\r\nX: ")).await;
    assert_eq!(outcome.status, None);
    assert_eq!(error_of(&outcome), "The endpoint didn't answer within 15 seconds.");
    assert!(outcome.latency >= SHORT, "{outcome:?}");
}

#[tokio::test]
async fn a_body_that_comes_by_the_byte_times_out_and_its_status_counts() {
    for (head, status) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", 200),
        ("HTTP/1.1 500 Error\r\n\r\n", 500),
    ] {
        let outcome = outcome_of_cut(SHORT, Act::Drip(head)).await;
        assert_eq!(outcome.status, Some(status));
        assert!(outcome.latency >= SHORT, "{outcome:?}");
        assert!(outcome.answer.starts_with('a'), "{outcome:?}");
    }
}

#[tokio::test]
async fn endless_interim_answers_time_out() {
    let outcome =
        outcome_of_cut(SHORT, Act::Repeat("", b"HTTP/1.1 100 Continue\r\n\r\n".repeat(100))).await;
    assert_eq!(outcome.status, None);
}

#[tokio::test]
async fn a_huge_head_is_refused() {
    let mut head = b"HTTP/1.1 200 OK\r\n".to_vec();
    for n in 0..100_000 {
        head.extend_from_slice(format!("X-{n}: y\r\n").as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    let long_value = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "y".repeat(1_000_000));
    for act in [
        Act::AnswerAndClose(head),
        Act::AnswerAndClose(long_value.into_bytes()),
        Act::Repeat("HTTP/1.1 200 OK\r\n", b"X: y\r\n".repeat(1000)),
    ] {
        let outcome = outcome_of_cut(LONG, act).await;
        assert_eq!(outcome.status, None);
        assert!(error_of(&outcome).starts_with("The answer isn't valid HTTP: "), "{outcome:?}");
    }
}

#[tokio::test]
async fn http_1_0_is_understood() {
    let outcome = outcome_of(Act::AnswerAndClose(b"HTTP/1.0 200 OK\r\n\r\nold".to_vec())).await;
    assert!(outcome.is_success(), "{outcome:?}");
    assert_eq!(outcome.answer, "old");
}

#[tokio::test]
async fn without_a_complete_head_the_attempt_fails() {
    let cases = [
        ("", "The connection was lost before the answer: "),
        ("HTTP/1.1 200 OK\r\nX", "The connection was lost before the answer: "),
        ("SSH-2.0-OpenSSH_9.6\r\n", "The answer isn't valid HTTP: "),
        ("HTTP/1.1 2000 OK\r\n\r\n", "The answer isn't valid HTTP: "),
        ("HTTP/2 200\r\n\r\n", "The answer isn't valid HTTP: "),
        ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "The answer isn't valid HTTP: "),
    ];
    for (bytes, error) in cases {
        let outcome = outcome_of(Act::AnswerAndClose(bytes.as_bytes().to_vec())).await;
        assert_eq!((outcome.status, outcome.answer.as_str()), (None, ""), "{bytes:?}");
        assert!(error_of(&outcome).starts_with(error), "{outcome:?} {bytes:?}");
    }
}

#[tokio::test]
async fn a_body_that_ends_early_is_judged_by_its_status() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf".to_vec();
    let outcome = outcome_of(Act::AnswerAndClose(head)).await;
    assert!(outcome.is_success(), "{outcome:?}");
    assert_eq!(outcome.answer, "half");
}

#[tokio::test]
async fn without_a_listener_the_connection_fails() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let outcome = deliver(&client(local_rules(), LONG), &url).await;
    assert!(error_of(&outcome).starts_with("The connection failed: "), "{outcome:?}");
    assert!(error_of(&outcome).contains("refused"), "{outcome:?}");
}

#[tokio::test]
async fn a_kept_connection_is_used_again() {
    let acts = [1, 2, 3].map(|_| Act::Answer(answer("200 OK", "", b"")));
    let receiver = Receiver::start(acts).await;
    let resolver = Fixed { addresses: vec![receiver.address], ..Fixed::default() };
    let tls = tls::client(None).unwrap();
    let client = WebhookClient::with(local_rules(), tls, LONG, resolver.clone()).unwrap();
    let port = receiver.address.port();
    for _ in 0..3 {
        let outcome = deliver(&client, &format!("http://hooks.example.com:{port}/")).await;
        assert!(outcome.is_success(), "{outcome:?}");
    }
    assert_eq!(receiver.opened(), 1);
    assert_eq!(*resolver.names.lock().unwrap(), ["hooks.example.com"], "one lookup a connection");
    let host = format!("hooks.example.com:{port}");
    assert_eq!(receiver.seen()[2].header("host"), Some(host.as_str()));
}

#[tokio::test]
async fn localhost_is_reached_only_if_it_is_allowed() {
    let receiver = Receiver::start([Act::Answer(answer("200 OK", "", b""))]).await;
    let url = format!("http://localhost:{}/", receiver.address.port());
    for networks in [&[][..], &["127.0.0.0/8"]] {
        let outcome = deliver(&client(rules(networks), LONG), &url).await;
        assert!(error_of(&outcome).contains("private or reserved"), "{outcome:?}");
    }
    assert_eq!(receiver.opened(), 0);
    let outcome = deliver(&client(local_rules(), LONG), &url).await;
    assert!(outcome.is_success(), "{outcome:?}");
}

#[tokio::test]
async fn refused_urls_are_never_connected_to() {
    let receiver = Receiver::start([]).await;
    let port = receiver.address.port();
    let public = client(rules(&[]), LONG);
    for host in
        ["127.0.0.1", "2130706433", "0x7f.1", "127.1", "localhost", "[::ffff:127.0.0.1]", "0"]
    {
        let outcome = deliver(&public, &format!("http://{host}:{port}/")).await;
        assert!(error_of(&outcome).contains("private or reserved"), "{outcome:?}");
        assert_eq!((outcome.status, outcome.retry_after), (None, None));
    }
    let mut https_only = local_rules();
    https_only.allow_http = false;
    let outcome = deliver(&client(https_only, LONG), &receiver.url()).await;
    assert!(error_of(&outcome).contains("https"), "{outcome:?}");
    let url = format!("http://user:{HIDDEN}@127.0.0.1:{port}/");
    let outcome = deliver(&client(local_rules(), LONG), &url).await;
    assert!(error_of(&outcome).contains("password"), "{outcome:?}");
    assert_eq!(receiver.opened(), 0);
}

#[tokio::test]
async fn a_name_that_resolves_to_a_special_address_is_never_connected_to() {
    let receiver = Receiver::start([]).await;
    let port = receiver.address.port();
    let public = SocketAddr::from(([93, 184, 216, 34], 0));
    for addresses in [vec![receiver.address], vec![public, receiver.address]] {
        let resolver = Fixed { addresses, ..Fixed::default() };
        let tls = tls::client(None).unwrap();
        let client = WebhookClient::with(rules(&[]), tls, LONG, resolver.clone()).unwrap();
        let outcome = deliver(&client, &format!("http://rebind.example.com:{port}/")).await;
        let error = "The host resolves to an address that isn't allowed: \
                     it is private or reserved.";
        assert_eq!(error_of(&outcome), error);
        assert_eq!(*resolver.names.lock().unwrap(), ["rebind.example.com"]);
    }
    assert_eq!(receiver.opened(), 0);
}

#[tokio::test]
async fn without_an_address_the_attempt_fails() {
    let tls = || tls::client(None).unwrap();
    let client = WebhookClient::with(rules(&[]), tls(), LONG, Fixed::default()).unwrap();
    let outcome = deliver(&client, "https://nobody.example.com/").await;
    let error = "The host name can't be resolved. Check its DNS records.";
    assert_eq!(error_of(&outcome), error);
    let client = WebhookClient::with(rules(&[]), tls(), SHORT, Silent).unwrap();
    let outcome = deliver(&client, "https://silent.example.com/").await;
    assert!(error_of(&outcome).contains("seconds"), "{outcome:?}");
}

/// Returns an acceptor with a self-signed certificate for these names, and client settings that
/// trust it.
fn tls_pair(params: &CertificateParams) -> (TlsAcceptor, ClientConfig) {
    let provider = Arc::new(ring::default_provider());
    let key = rcgen::KeyPair::generate().unwrap();
    let cert = params.self_signed(&key).unwrap().der().clone();
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.clone()], private)
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(cert).unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (TlsAcceptor::from(Arc::new(server)), client)
}

fn certificate(name: &str) -> CertificateParams {
    CertificateParams::new([name.to_owned()]).unwrap()
}

#[tokio::test]
async fn a_trusted_certificate_is_accepted() {
    let (acceptor, tls) = tls_pair(&certificate("hooks.example.com"));
    let receiver = Receiver::start_tls([Act::Answer(answer("200 OK", "", b""))], acceptor).await;
    let resolver = Fixed { addresses: vec![receiver.address], ..Fixed::default() };
    let client = WebhookClient::with(local_rules(), tls, LONG, resolver).unwrap();
    let url = format!("https://hooks.example.com:{}/", receiver.address.port());
    let outcome = deliver(&client, &url).await;
    assert!(outcome.is_success(), "{outcome:?}");
}

#[tokio::test]
async fn nothing_is_sent_over_an_unverified_connection() {
    let mut expired = certificate("hooks.example.com");
    expired.not_before = rcgen::date_time_ymd(2020, 1, 1);
    expired.not_after = rcgen::date_time_ymd(2021, 1, 1);
    let public = tls::client(None).unwrap();
    let (unknown, _) = tls_pair(&certificate("hooks.example.com"));
    let cases = [
        (tls_pair(&expired), "expired"),
        (tls_pair(&certificate("other.example.com")), "not valid for name"),
        ((unknown, public), "UnknownIssuer"),
    ];
    for ((acceptor, tls), expected) in cases {
        let receiver = Receiver::start_tls([], acceptor).await;
        let resolver = Fixed { addresses: vec![receiver.address], ..Fixed::default() };
        let client = WebhookClient::with(local_rules(), tls, LONG, resolver).unwrap();
        let url = format!("https://hooks.example.com:{}/", receiver.address.port());
        let outcome = deliver(&client, &url).await;
        let error = error_of(&outcome);
        assert!(error.starts_with("The TLS connection failed: "), "{error}");
        assert!(error.contains(expected), "{error}");
        assert_eq!((receiver.seen().len(), receiver.opened()), (0, 1));
    }
}

#[tokio::test]
async fn an_endpoint_without_tls_gets_nothing_in_the_clear() {
    let receiver = Receiver::start([]).await;
    let url = receiver.url().replace("http:", "https:");
    let outcome = deliver(&client(local_rules(), SHORT), &url).await;
    assert_eq!((outcome.status, receiver.seen().len()), (None, 0), "{outcome:?}");
}
