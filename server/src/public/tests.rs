use std::sync::Arc;

use app::footer::Footer;
use axum::Router;
use axum::body::Body;
use axum::http::Response;
use axum::routing::get;
use domain::{Money, Prices};
use leptos::prelude::LeptosOptions;
use service::{Clock, Config, Entropy, Limits, Service};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::PublicAddress;
use crate::api::Api;
use crate::config::ConnectionLimits;
use crate::http::{self, Connections, NoAnswer};
use crate::metrics::Metrics;
use crate::web::ErrorPages;
use crate::webhook::{Sender, WebhookClient};

async fn unanswered() -> Response<Body> {
    let mut response = Response::new(Body::from("never seen"));
    response.extensions_mut().insert(NoAnswer);
    response
}

async fn breaks() -> &'static str {
    let empty: Vec<&'static str> = Vec::new();
    empty[0]
}

/// Sends `GET path` to a site with a test portal. Returns everything that the client received, and
/// the metrics.
async fn asked(path: &str) -> (String, String) {
    asked_for("*/*", path).await
}

/// The same with this `Accept` header.
async fn asked_for(accept: &str, path: &str) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::open(Config {
        database_url: format!("sqlite:{}", folder.path().join("test.db").display()),
        prices: Prices::new(Money::from_micros(1), Money::from_micros(2)).unwrap(),
        currency: "USD".to_owned(),
        data_dir: folder.path().join("data"),
        network: service::Network::sandbox("266".to_owned(), "Heliograph".to_owned()),
        limits: Limits::default(),
        mail: service::MailSettings::default(),
        endpoints: service::EndpointRules::default(),
        opt_outs: service::OptOutSettings::default(),
        clock: Clock::system(),
        entropy: Entropy::system(),
    })
    .await
    .unwrap();
    let metrics = Arc::new(Metrics::default());
    let sender = Sender {
        service: service.clone(),
        client: WebhookClient::new(service::EndpointRules::default()).unwrap(),
        metrics: Arc::clone(&metrics),
        currency: "USD".into(),
    };
    let api = Api {
        service: service.clone(),
        metrics: Arc::clone(&metrics),
        currency: "USD".into(),
        country_code: "266".into(),
        document: bytes::Bytes::new(),
        sender: Arc::new(sender),
    };
    let portal = Router::new().route("/unanswered", get(unanswered)).route("/breaks", get(breaks));
    let site = PublicAddress::new(
        api,
        portal,
        ErrorPages::new(
            LeptosOptions::builder().output_name("heliograph").build(),
            false,
            Footer::default(),
        ),
        Arc::clone(&metrics),
        Vec::new(),
        true,
    )
    .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let limits = ConnectionLimits { all: 1, address: 1, network: 1 };
    let connections = Connections::new(limits, Vec::new(), Arc::clone(&metrics));
    let serving = http::serve(listener, None, site, connections, stop.clone());
    let server = tokio::spawn(serving);
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: test\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    stop.cancel();
    server.await.unwrap();
    service.close().await;
    (answer, metrics.render(None))
}

#[tokio::test]
async fn what_must_not_be_answered_closes_the_connection() {
    let (answer, metrics) = asked("/unanswered").await;
    assert_eq!(answer, "");
    let labels = "method=\"GET\",route=\"/unanswered\",status=\"0\"";
    let count = format!("heliograph_request_seconds_count{{{labels}}} 1\n");
    assert!(metrics.contains(&count), "{metrics}");
}

#[tokio::test]
async fn a_panic_is_answered_500_in_words_of_our_own() {
    let (answer, _) = asked("/breaks").await;
    assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
    assert!(answer.contains("x-request-id: "), "{answer}");
    assert!(answer.contains("strict-transport-security: "), "{answer}");
    assert!(!answer.contains("index out of bounds"), "{answer}");
}

#[tokio::test]
async fn a_browser_is_shown_a_page_with_the_id_of_the_request_that_failed() {
    let (answer, _) = asked_for("text/html,application/xhtml+xml", "/breaks").await;
    assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
    assert!(answer.contains("<h1>Something went wrong"), "{answer}");
    assert!(answer.contains("<title>Something went wrong · Heliograph</title>"), "{answer}");
    let (_, id) = answer.split_once("x-request-id: ").unwrap();
    let (id, _) = id.split_once("\r\n").unwrap();
    assert!(answer.contains(&format!("Request ID: {id}<")), "{answer}");
    assert!(answer.contains("content-security-policy: default-src 'none'; style-src"), "{answer}");
}
