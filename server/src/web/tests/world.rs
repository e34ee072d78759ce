//! A portal with its people and the data of a customer, and requests to it.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::header::{ACCEPT, CONTENT_TYPE, COOKIE, SET_COOKIE};
use axum::http::{Request, StatusCode};
use axum::response::Response;
use domain::{Category, Email, KeyKind, Money, Password, Reference};
use serde_json::Value;
use service::{Actor, DepositRequest, Limits, Service, WebhookChange};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::PEOPLE;
use crate::api::{self, Api};
use crate::commands::service_config;
use crate::config::Settings;
use crate::metrics::Metrics;
use crate::web::router;
use crate::webhook::{Sender, WebhookClient};

pub const STAFF_WITH_FACTOR: &str = "staff@example.org";
pub const PASSWORD: &str = "correct horse battery";
/// The time limit for a response. Without it, a request that is never answered would block the
/// test, and nothing would say which request it was.
const ANSWER_TIME: Duration = Duration::from_mins(1);

/// Opens a service on its own database.
pub async fn service_in(folder: &TempDir) -> (Service, Settings) {
    let path = |name: &str| folder.path().join(name).display().to_string();
    let flags = [
        ("database_url", format!("sqlite:{}", path("test.db"))),
        ("data_dir", path("data")),
        // The table contains wrong passwords and many changes.
        ("sign_in_failures_max", "1000000".to_owned()),
        ("changes_at_once", "10000".to_owned()),
        ("webhook_allow_http", "true".to_owned()),
        ("webhook_networks", "127.0.0.0/8".to_owned()),
    ];
    let settings = Settings::load(None, std::iter::empty(), &flags).unwrap();
    let service =
        Service::open(service_config(&settings, "http://127.0.0.1".to_owned())).await.unwrap();
    (service, settings)
}

/// A portal with its people, and the data of the customer.
pub struct World {
    pub portal: Router,
    pub service: Service,
    pub account: i64,
    pub reference: String,
    transid: String,
    batchid: String,
    webhook: String,
    event: String,
    _folder: TempDir,
}

impl World {
    pub async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (service, settings) = service_in(&folder).await;
        for email in PEOPLE.into_iter().flatten() {
            let is_staff = email.starts_with("staff");
            let email = Email::parse(email).unwrap();
            let password = Password::parse(PASSWORD).unwrap();
            let accounts = service.accounts();
            let added = accounts.add_account(&Actor::System, &email, &password, is_staff);
            added.await.unwrap();
        }
        let customer = service.accounts().sign_in("customer@example.org", PASSWORD, "").await;
        let account = customer.unwrap().id;
        let new =
            service.applications().create_application(account, Category::Sms, None).await.unwrap();
        let unmatched = DepositRequest {
            bank_id: "b1".to_owned(),
            reference: "nobody's".to_owned(),
            amount: Money::from_micros(1),
        };
        service.money().add_deposit(&Actor::System, &unmatched).await.unwrap();
        let key = new.test_key.expose();
        let metrics = Arc::new(Metrics::default());
        let sender = Arc::new(Sender {
            service: service.clone(),
            client: WebhookClient::new(settings.endpoint_rules(false)).unwrap(),
            metrics: Arc::clone(&metrics),
            currency: "USD".into(),
        });
        let api = api::router(Api {
            service: service.clone(),
            metrics,
            sender: Arc::clone(&sender),
            currency: "USD".into(),
            country_code: "266".into(),
            document: bytes::Bytes::new(),
        });
        let form = "message=Hello&number=57000001";
        let sent = post(&api, &format!("/sms/send/{key}"), form, None).await;
        let transid = member(sent, "transid").await;
        let form = "message=Hello&numbers=57000001";
        let uploaded = post(&api, &format!("/sms/bulk/{key}"), form, None).await;
        let batchid = member(uploaded, "batchid").await;
        let (webhook, event) = endpoint_with_event(&sender, account, new.reference).await;
        let stop = CancellationToken::new();
        let document = crate::openapi::document("http://test", &Limits::default()).unwrap();
        let url = "http://test";
        let portal = router(sender, &settings, url, &document, "key", stop);
        Self {
            portal,
            service,
            account,
            reference: new.reference.to_string(),
            transid,
            batchid,
            webhook,
            event,
            _folder: folder,
        }
    }

    /// Credits the deposit `b2` to the customer's application.
    pub async fn credit(&self) {
        let deposit = DepositRequest {
            bank_id: "b2".to_owned(),
            reference: self.reference.clone(),
            amount: Money::from_micros(2_500_000),
        };
        self.service.money().add_deposit(&Actor::System, &deposit).await.unwrap();
    }

    pub fn filled(&self, text: &str) -> String {
        text.replace("{reference}", &self.reference)
            .replace("{account}", &self.account.to_string())
            .replace("{id}", &self.transid)
            .replace("{transid}", &self.transid)
            .replace("{batchid}", &self.batchid)
            .replace("{webhook}", &self.webhook)
            .replace("{event}", &self.event)
            .replace("{name}", "sandbox")
            .replace("{bank_id}", "b2")
            .replace("{token}", "x")
            .replace("{password}", &PASSWORD.replace(' ', "+"))
    }

    /// Signs in and returns the session's cookie.
    pub async fn sign_in(&self, email: &str) -> String {
        // A factor accepts each code once. A new factor for each sign-in accepts the current code
        // again.
        let secret = self.service.accounts().new_totp_secret();
        if email == STAFF_WITH_FACTOR {
            let account = self.service.accounts().find_account(email).await.unwrap().unwrap();
            let accounts = self.service.accounts();
            let given = accounts.give_factor(&Actor::System, account.id, &secret);
            given.await.unwrap();
        }
        let form = self.filled(&format!("email={email}&password={{password}}"));
        let cookie = session_of(&post(&self.portal, "/fn/sign-in", &form, None).await);
        if email != STAFF_WITH_FACTOR {
            return cookie;
        }
        let form = format!("code={}", secret.code(self.service.clock().now()));
        session_of(&post(&self.portal, "/fn/sign-in-code", &form, Some(cookie)).await)
    }

    /// Returns the HTML of a page that this cookie may open. It may be empty.
    pub async fn page(&self, path: &str, cookie: &str) -> String {
        let request = Request::get(path).header(ACCEPT, "text/html");
        let answer = ask(&self.portal, request, Some(cookie.to_owned()), Body::empty()).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        html(answer).await
    }
}

/// Creates an endpoint that no program listens at, and sends it a test event. Returns the IDs of
/// both.
async fn endpoint_with_event(
    sender: &Sender,
    account: i64,
    reference: Reference,
) -> (String, String) {
    let webhooks = sender.service.webhooks();
    let access = webhooks.access_of(account, reference, KeyKind::Live).await.unwrap();
    let url = webhooks.endpoint_url("http://127.0.0.1:9/").unwrap();
    let create = WebhookChange::Create { url, types: None };
    let id = webhooks.change(&access, create, None).await.unwrap().record.webhookid;
    sender.test(&access, id, None).await.unwrap();
    let (_, attempts) = webhooks.endpoint(&access, id, 1).await.unwrap();
    (id.to_string(), attempts[0].event.clone())
}

/// Returns the cookie of the session that a response starts.
fn session_of(answer: &Response) -> String {
    let cookies = answer.headers().get_all(SET_COOKIE).into_iter();
    let mut cookies = cookies.map(|cookie| cookie.to_str().unwrap());
    let session = cookies.find(|cookie| cookie.starts_with("heliograph="));
    session.unwrap().split(';').next().unwrap().to_owned()
}

pub async fn ask(
    router: &Router,
    request: axum::http::request::Builder,
    cookie: Option<String>,
    body: Body,
) -> Response {
    let request = request.header("Host", "test").header(COOKIE, cookie.unwrap_or_default());
    let request = request.body(body).unwrap();
    let uri = request.uri().clone();
    let asked = tokio::time::timeout(ANSWER_TIME, router.clone().oneshot(request));
    asked.await.unwrap_or_else(|_| panic!("{uri} isn't answered")).unwrap()
}

pub async fn post(router: &Router, path: &str, form: &str, cookie: Option<String>) -> Response {
    let request = Request::post(path).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    ask(router, request, cookie, Body::from(form.to_owned())).await
}

/// Returns the HTML in a response, without the markers for scripts.
pub async fn html(answer: Response) -> String {
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    String::from_utf8(body.to_vec()).unwrap().replace("<!>", "")
}

pub async fn json(answer: Response) -> Value {
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{body:?}"))
}

async fn member(answer: Response, name: &str) -> String {
    let json = json(answer).await;
    let text = json[name].as_str();
    text.unwrap_or_else(|| panic!("{json}")).to_owned()
}
