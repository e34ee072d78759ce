//! Tests who has access: every page, stream and server function of the router, for every kind of
//! person.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use app::counter::COUNT_PATH;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::header::{
    ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, LOCATION, REFERER, SET_COOKIE,
};
use axum::http::{Request, StatusCode};
use axum::response::Response;
use domain::ids::Shard;
use domain::records::BankStatement;
use domain::{
    ApplicationId, Category, Email, KeyKind, MessageStatus, Money, Password, Reason, Reference,
    Timestamp, Transid,
};
use serde_json::Value;
use service::{
    Actor, AuditFilter, CarrierReceipt, DepositRequest, Lease, Limits, Origin, SANDBOX_CARRIER,
    SendRequest, Service, StartOf, StartRequest, SubmitOutcome, Submitted, WebhookChange,
    WrittenReceipt,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::{router, routes};
use crate::api::{self, Api};
use crate::commands::service_config;
use crate::config::Settings;
use crate::metrics::Metrics;
use crate::webhook::{Sender, WebhookClient};

/// The outcome for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gets {
    /// Access. The request may still be refused by its own rules.
    In,
    /// The sign-in page.
    SignIn,
    /// 404, as at an address that never existed.
    Nothing,
    /// The page that sets up a second factor.
    SetUp,
}
use Gets::{In, Nothing, SetUp, SignIn};

/// The outcomes for nobody, the customer who owns the data, another customer, staff, and staff
/// without a second factor.
type Row = [Gets; 5];

const EVERYBODY: Row = [In; 5];
const SIGNED_IN: Row = [SignIn, In, In, In, SetUp];
/// Staff without a second factor have access.
const SETTING_UP: Row = [SignIn, In, In, In, In];
const OWNER: Row = [SignIn, In, Nothing, Nothing, SetUp];
const STAFF: Row = [SignIn, Nothing, Nothing, In, SetUp];
/// A stream doesn't redirect: it answers 401 instead.
const OWNERS_STREAM: Row = [SignIn, In, Nothing, Nothing, SignIn];
/// Every account has access to its own data.
const ACCOUNTS_STREAM: Row = [SignIn, In, In, In, SignIn];
const STAFFS_STREAM: Row = [SignIn, Nothing, Nothing, In, SignIn];

/// The method, the path in the router, the arguments of a server function, and the outcomes. Names
/// in braces are replaced by the customer's data.
const TABLE: [(&str, &str, &str, Row); 210] = [
    ("GET", "/", "", EVERYBODY),
    ("GET", "/register", "", EVERYBODY),
    ("GET", "/login", "", EVERYBODY),
    ("GET", "/forgot", "", EVERYBODY),
    ("GET", "/reset/{token}", "", EVERYBODY),
    ("GET", "/docs", "", EVERYBODY),
    ("GET", "/applications", "", SIGNED_IN),
    ("GET", "/applications/new", "", SIGNED_IN),
    ("GET", "/applications/{reference}", "", OWNER),
    ("GET", "/applications/{reference}/messages", "", OWNER),
    ("GET", "/applications/{reference}/inbound", "", OWNER),
    ("GET", "/applications/{reference}/optouts", "", OWNER),
    ("POST", "/applications/{reference}/optouts/file", "", OWNER),
    ("GET", "/fn/opt-outs", "reference={reference}", OWNER),
    ("GET", "/applications/{reference}/check-file", "", OWNER),
    ("POST", "/applications/{reference}/check-file", "", OWNER),
    ("GET", "/fn/check-file", "reference={reference}", OWNER),
    ("POST", "/fn/add-opt-out", "reference={reference}&key=live&number=71234568", OWNER),
    ("POST", "/fn/remove-opt-out", "reference={reference}&key=live&number=71234568", OWNER),
    ("GET", "/applications/{reference}/statement", "", OWNER),
    ("GET", "/applications/{reference}/sender", "", OWNER),
    ("GET", "/applications/{reference}/keys", "", OWNER),
    ("GET", "/applications/{reference}/webhooks", "", OWNER),
    ("GET", "/applications/{reference}/webhooks/{webhook}", "", OWNER),
    ("GET", "/applications/{reference}/webhooks/{webhook}/{event}", "", OWNER),
    ("GET", "/applications/{reference}/settings", "", OWNER),
    ("GET", "/applications/{reference}/verify", "", OWNER),
    ("GET", "/applications/{reference}/start", "", OWNER),
    ("GET", "/reports", "", SIGNED_IN),
    ("GET", "/reports/{id}", "", OWNER),
    ("GET", "/devices", "", SIGNED_IN),
    ("GET", "/account", "", SIGNED_IN),
    ("GET", "/account/close", "", SIGNED_IN),
    ("GET", "/fn/closing", "", SIGNED_IN),
    ("POST", "/fn/close-account", "references={reference}&password=wrong", SIGNED_IN),
    ("GET", "/account/export.json", "", SIGNED_IN),
    ("GET", "/account/number", "", SIGNED_IN),
    ("GET", "/account/number.json", "number=57000001", SIGNED_IN),
    ("GET", "/fn/erasing", "number=71234568", SIGNED_IN),
    ("POST", "/fn/erase-number", "number=71234568&credential=wrong", SIGNED_IN),
    ("GET", "/support", "", STAFF),
    ("GET", "/support/carriers", "", STAFF),
    ("GET", "/support/carriers/{name}/receipts", "", STAFF),
    ("GET", "/reports/messages.csv", "", SIGNED_IN),
    ("GET", "/applications/{reference}/statement.csv", "", OWNER),
    ("GET", "/applications/{reference}/inbound.csv", "", OWNER),
    ("GET", "/applications/{reference}/optouts.csv", "", OWNER),
    ("GET", "/applications/{reference}/inbound/events", "", OWNERS_STREAM),
    ("GET", "/reports/{batchid}/events", "", OWNERS_STREAM),
    ("GET", "/reports/events", "", ACCOUNTS_STREAM),
    ("GET", "/applications/events", "", ACCOUNTS_STREAM),
    ("GET", "/support/carriers/events", "", STAFFS_STREAM),
    ("GET", "/fn/viewer", "", EVERYBODY),
    ("GET", "/fn/session", "", EVERYBODY),
    ("GET", "/fn/home", "", EVERYBODY),
    ("GET", "/fn/counter", "", EVERYBODY),
    ("GET", "/fn/docs", "", EVERYBODY),
    ("POST", "/docs", "message=Hello&number=58001987", EVERYBODY),
    ("POST", "/fn/register", "email=new@example.org&new_password={password}", EVERYBODY),
    ("POST", "/fn/sign-in", "email=nobody@example.org&password=wrong", EVERYBODY),
    ("POST", "/fn/sign-out", "", EVERYBODY),
    ("GET", "/fn/mails-links", "", EVERYBODY),
    ("POST", "/fn/forgot", "email=nobody@example.org", EVERYBODY),
    ("GET", "/fn/reset-link", "token=x", EVERYBODY),
    ("POST", "/fn/reset", "token=x&new_password={password}", EVERYBODY),
    // It returns only what the session itself holds.
    ("POST", "/fn/take-keys", "reference={reference}", EVERYBODY),
    ("GET", "/fn/account", "", SIGNED_IN),
    ("POST", "/fn/set-theme", "theme=dark", SIGNED_IN),
    ("POST", "/fn/set-time-zone", "time_zone=Europe/Berlin", SIGNED_IN),
    ("POST", "/fn/tell-time-zone", "time_zone=Europe/Berlin", EVERYBODY),
    ("POST", "/fn/set-mails", "deposit=on", SIGNED_IN),
    ("POST", "/fn/name-device", "device=0&name=Work", SIGNED_IN),
    ("GET", "/account/email/{token}", "", EVERYBODY),
    ("POST", "/fn/ask-email-change", "email=new@example.org&password=wrong", SIGNED_IN),
    ("POST", "/fn/cancel-email-change", "", SIGNED_IN),
    ("POST", "/fn/change-email", "token=x", EVERYBODY),
    ("GET", "/account/email/stop/{token}", "", EVERYBODY),
    ("POST", "/fn/stop-email-change", "token=x", EVERYBODY),
    ("GET", "/fn/devices", "", SIGNED_IN),
    ("GET", "/fn/applications", "", SIGNED_IN),
    ("GET", "/fn/reports", "", SIGNED_IN),
    ("POST", "/fn/sign-out-device", "device=0", SIGNED_IN),
    ("POST", "/fn/sign-out-others", "password=wrong", SIGNED_IN),
    ("POST", "/fn/change-password", "password=wrong&new_password={password}", SIGNED_IN),
    ("POST", "/fn/create-application", "category=Electricity", SIGNED_IN),
    ("GET", "/fn/application", "reference={reference}", OWNER),
    ("GET", "/fn/key-clients", "reference={reference}&kind=live", OWNER),
    ("GET", "/fn/quick-start", "reference={reference}", OWNER),
    ("GET", "/fn/application-messages", "reference={reference}", OWNER),
    ("GET", "/fn/inbound", "reference={reference}", OWNER),
    ("GET", "/fn/application-statement", "reference={reference}", OWNER),
    ("GET", "/fn/application-sender", "reference={reference}", OWNER),
    ("GET", "/fn/report", "id={id}", OWNER),
    ("GET", "/fn/report", "id={batchid}", OWNER),
    ("POST", "/fn/request-activation", "reference={reference}", OWNER),
    ("POST", "/fn/request-sender-name", "reference={reference}&sender=Acme", OWNER),
    ("POST", "/fn/withdraw-sender-name", "reference={reference}", OWNER),
    ("POST", "/fn/delete-application", "reference={reference}", OWNER),
    ("POST", "/fn/set-name", "reference={reference}&name=Shop", OWNER),
    ("POST", "/fn/set-characters", "reference={reference}&replace=true", OWNER),
    ("POST", "/fn/set-lost-answer", "reference={reference}&lost_answer=hold", OWNER),
    ("GET", "/fn/settings", "reference={reference}", OWNER),
    ("GET", "/fn/codes", "reference={reference}", OWNER),
    ("POST", "/fn/set-codes", "reference={reference}&locale=fr&domain=", OWNER),
    ("GET", "/fn/limit-trial", "reference={reference}", OWNER),
    ("POST", "/fn/read-alarms", "reference={reference}&up_to=1", OWNER),
    (
        "POST",
        "/fn/set-limits",
        "reference={reference}&traffic_pumping=off&leaked_key=off&international=off",
        OWNER,
    ),
    ("POST", "/fn/replace-key", "reference={reference}&kind=live&password={password}", OWNER),
    ("POST", "/fn/replace-key", "reference={reference}&kind=test&password={password}", OWNER),
    ("GET", "/fn/webhooks", "reference={reference}", OWNER),
    ("GET", "/fn/webhook", "reference={reference}&webhookid={webhook}", OWNER),
    ("GET", "/fn/webhook-event", "reference={reference}&webhookid={webhook}&event={event}", OWNER),
    // It returns only what the session itself holds.
    ("POST", "/fn/take-webhook-news", "webhookid={webhook}", EVERYBODY),
    ("POST", "/fn/create-webhook", "reference={reference}&url=nonsense&kind=live", OWNER),
    ("POST", "/fn/cancel-scheduled", "reference={reference}", OWNER),
    ("POST", "/fn/stop-report", "id={id}&action=cancel", OWNER),
    ("POST", "/fn/change-webhook", "reference={reference}&webhookid={webhook}&action=check", OWNER),
    ("POST", "/fn/move-webhook", "reference={reference}&webhookid={webhook}&url=nonsense", OWNER),
    ("POST", "/fn/set-webhook-events", "reference={reference}&webhookid={webhook}", OWNER),
    ("POST", "/fn/replay-event", "reference={reference}&webhookid={webhook}&event={event}", OWNER),
    (
        "POST",
        "/fn/replay-since",
        "reference={reference}&webhookid={webhook}&since=2026-11-21T08:30",
        OWNER,
    ),
    ("GET", "/fn/support", "", STAFF),
    ("GET", "/fn/carriers", "", STAFF),
    ("GET", "/fn/carrier-receipts", "name=sandbox", STAFF),
    ("GET", "/support/confirm", "act=suspend&subject={reference}", STAFF),
    ("GET", "/fn/confirmation", "act=drain&subject=sandbox", STAFF),
    ("POST", "/fn/act", "act=drain&subject=sandbox", STAFF),
    ("GET", "/confirm/{token}", "", EVERYBODY),
    ("POST", "/fn/confirm", "token=x", EVERYBODY),
    ("GET", "/fn/new-application", "", SIGNED_IN),
    ("POST", "/fn/mail-confirmation", "", SIGNED_IN),
    ("POST", "/fn/set-notices", "reference={reference}&low_balance=5&batches=none", OWNER),
    ("GET", "/support/mail", "", STAFF),
    ("GET", "/fn/mails", "", STAFF),
    ("POST", "/fn/retry-mail", "id=0", STAFF),
    ("GET", "/support/approvals", "", STAFF),
    ("GET", "/fn/approvals", "", STAFF),
    ("POST", "/fn/decide-approval", "id=0&action=decline", STAFF),
    ("GET", "/support/applications", "", STAFF),
    ("GET", "/fn/support-applications", "", STAFF),
    ("POST", "/fn/view-cases", "kind=application&cases={reference}", STAFF),
    ("POST", "/fn/open-incident", "text=Slow", STAFF),
    ("POST", "/fn/end-incident", "id=0", STAFF),
    ("GET", "/support/senders", "", STAFF),
    ("GET", "/fn/support-senders", "", STAFF),
    ("POST", "/fn/set-staff-list", "list=reserved-words&lines=bank", STAFF),
    ("GET", "/support/numbers", "", STAFF),
    ("GET", "/fn/support-numbers", "", STAFF),
    ("POST", "/fn/add-number", "number=26650000001&reference={reference}", STAFF),
    ("GET", "/support/inbound", "", STAFF),
    ("GET", "/fn/support-inbound", "", STAFF),
    ("POST", "/fn/assign-inbound", "recipient=1234", STAFF),
    ("GET", "/support/prices", "", STAFF),
    ("GET", "/fn/support-prices", "number=27821234567", STAFF),
    ("POST", "/fn/ask-base-prices", "local=0.04&international=0.2", STAFF),
    ("POST", "/fn/ask-prefix-price", "prefix=27&price=0.2", STAFF),
    ("GET", "/support/margin", "", STAFF),
    ("GET", "/fn/margin", "from=2026-11-01", STAFF),
    ("GET", "/support/margin.csv", "", STAFF),
    ("GET", "/support/accounts", "", STAFF),
    ("GET", "/support/accounts/{account}", "", STAFF),
    ("GET", "/support/applications/{reference}", "", STAFF),
    ("GET", "/support/search", "", STAFF),
    ("GET", "/support/messages/{transid}", "", STAFF),
    ("GET", "/support/audit", "", STAFF),
    ("GET", "/support/audit.csv", "", STAFF),
    ("GET", "/fn/support-accounts", "", STAFF),
    ("GET", "/fn/support-account", "id={account}", STAFF),
    ("POST", "/fn/add-note", "id={account}&text=Called", STAFF),
    ("GET", "/fn/desk-work", "", STAFF),
    ("GET", "/fn/support-visit", "reference={reference}", STAFF),
    (
        "POST",
        "/fn/change-batch",
        "reference={reference}&batchid={batchid}&action=pause&reason=x",
        STAFF,
    ),
    ("GET", "/fn/support-search", "text={reference}", STAFF),
    ("GET", "/fn/support-message", "transid={transid}", STAFF),
    ("POST", "/fn/show-text", "transid={transid}", STAFF),
    ("POST", "/fn/decide-message", "transid={transid}&decision=delivered", STAFF),
    ("GET", "/fn/support-audit", "", STAFF),
    ("GET", "/support/import", "", STAFF),
    ("POST", "/support/import/file", "", STAFF),
    ("GET", "/fn/support-import", "", STAFF),
    ("POST", "/fn/confirm-statement", "statement=0", STAFF),
    ("POST", "/fn/handle-bank-line", "statement=0&line=1", STAFF),
    ("POST", "/fn/choose-columns", "file=0&bank_id=0&reference=1&amount=2", STAFF),
    ("GET", "/support/deposits", "", STAFF),
    ("GET", "/fn/support-deposits", "", STAFF),
    ("GET", "/support/deposits/assign", "bank_id=b1&reference={reference}", STAFF),
    ("GET", "/fn/assignment", "bank_id=b1&reference={reference}", STAFF),
    ("POST", "/fn/assign-deposit", "bank_id=b1&reference={reference}", STAFF),
    ("POST", "/fn/return-deposit", "bank_id=b1&reason=x", STAFF),
    ("GET", "/fn/security-events", "", SIGNED_IN),
    ("GET", "/account/billing", "", SIGNED_IN),
    ("GET", "/fn/billing-details", "", SIGNED_IN),
    ("POST", "/fn/set-billing-details", "name=Acme&address=Main+Street&tax_number=1", SIGNED_IN),
    ("GET", "/applications/{reference}/slip", "", OWNER),
    ("GET", "/fn/deposit-slip", "reference={reference}", OWNER),
    ("GET", "/applications/{reference}/deposits/{bank_id}", "", OWNER),
    ("GET", "/fn/deposit-receipt", "reference={reference}&bank_id=b2", OWNER),
    ("GET", "/login/code", "", EVERYBODY),
    ("POST", "/fn/sign-in-code", "code=000000", EVERYBODY),
    ("GET", "/account/two-factor", "", SETTING_UP),
    ("POST", "/fn/two-factor", "replace=false&confirm=false", SETTING_UP),
    ("POST", "/fn/confirm-it-is-you", "", SETTING_UP),
    ("POST", "/fn/set-up-two-factor", "code=000000", SETTING_UP),
    ("POST", "/fn/renew-recovery-codes", "", SIGNED_IN),
    ("POST", "/fn/remove-two-factor", "", SIGNED_IN),
    ("POST", "/fn/begin-passkey", "name=Phone", SIGNED_IN),
    ("POST", "/fn/passkey-to-add", "", SIGNED_IN),
    ("POST", "/fn/add-passkey", "answer=x", SIGNED_IN),
    ("POST", "/fn/remove-passkey", "passkey=0", SIGNED_IN),
    // It refuses clients that neither are signed in nor gave a password.
    ("POST", "/fn/ask-passkey", "", EVERYBODY),
];

/// The emails of the people in a row's columns.
const PEOPLE: [Option<&str>; 5] = [
    None,
    Some("customer@example.org"),
    Some("other@example.org"),
    Some(STAFF_WITH_FACTOR),
    Some("staff.without@example.org"),
];
const STAFF_WITH_FACTOR: &str = "staff@example.org";
const PASSWORD: &str = "correct horse battery";
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
struct World {
    portal: Router,
    service: Service,
    account: i64,
    reference: String,
    transid: String,
    batchid: String,
    webhook: String,
    event: String,
    _folder: TempDir,
}

impl World {
    async fn new() -> Self {
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
    async fn credit(&self) {
        let deposit = DepositRequest {
            bank_id: "b2".to_owned(),
            reference: self.reference.clone(),
            amount: Money::from_micros(2_500_000),
        };
        self.service.money().add_deposit(&Actor::System, &deposit).await.unwrap();
    }

    fn filled(&self, text: &str) -> String {
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
    async fn sign_in(&self, email: &str) -> String {
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

    /// Returns a page's HTML, without the markers for its scripts.
    async fn page(&self, path: &str, cookie: &str) -> String {
        let request = Request::get(path).header(ACCEPT, "text/html");
        let answer = ask(&self.portal, request, Some(cookie.to_owned()), Body::empty()).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        String::from_utf8(body.to_vec()).unwrap().replace("<!>", "")
    }

    /// Returns the outcome of a row for a person, in a new session.
    async fn gets(&self, row: (&str, &str, &str, Row), email: Option<&str>) -> Gets {
        let (method, path, arguments, _) = row;
        let cookie = match email {
            Some(email) => Some(self.sign_in(email).await),
            None => None,
        };
        let (path, arguments) = (self.filled(path), self.filled(arguments));
        let is_function = path.starts_with("/fn/");
        let accept = if is_function { "*/*" } else { "text/html" };
        let answer = if method == "POST" {
            post(&self.portal, &path, &arguments, cookie).await
        } else {
            let request = Request::get(format!("{path}?{arguments}")).header(ACCEPT, accept);
            ask(&self.portal, request, cookie, Body::empty()).await
        };
        if is_function {
            return function_gives(answer).await;
        }
        let location = answer.headers().get(LOCATION);
        match answer.status() {
            StatusCode::OK => In,
            // An upload refuses a body that isn't a file.
            StatusCode::BAD_REQUEST if path.ends_with("/file") => In,
            StatusCode::NOT_FOUND => Nothing,
            StatusCode::UNAUTHORIZED => SignIn,
            StatusCode::FOUND | StatusCode::SEE_OTHER => {
                let location = location.unwrap().to_str().unwrap();
                if location.starts_with("/account/two-factor") {
                    return SetUp;
                }
                assert!(location.starts_with("/login"), "{path}: {location}");
                SignIn
            }
            status => panic!("{path}: {status}"),
        }
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

async fn ask(
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

async fn post(router: &Router, path: &str, form: &str, cookie: Option<String>) -> Response {
    let request = Request::post(path).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    ask(router, request, cookie, Body::from(form.to_owned())).await
}

async fn json(answer: Response) -> Value {
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{body:?}"))
}

async fn member(answer: Response, name: &str) -> String {
    let json = json(answer).await;
    let text = json[name].as_str();
    text.unwrap_or_else(|| panic!("{json}")).to_owned()
}

/// Returns the outcome in a server function's answer to scripts.
async fn function_gives(answer: Response) -> Gets {
    if answer.status() == StatusCode::OK {
        return In;
    }
    assert_eq!(answer.status().as_u16(), app::client::STATUS_OF_REFUSALS);
    let problem = json(answer).await;
    match problem["cause"].as_str() {
        Some("SignedOut") => SignIn,
        Some("SecondFactorMissing") => SetUp,
        Some("NotFound") => Nothing,
        Some("Unreadable" | "Failed" | "Uncertain") => panic!("{problem}"),
        _ => In,
    }
}

#[test]
fn every_page_stream_and_function_has_its_row() {
    let listed: BTreeSet<_> = routes().into_iter().collect();
    let rows = TABLE.map(|(method, path, ..)| (method.to_owned(), path.to_owned()));
    let rows: BTreeSet<_> = rows.into_iter().collect();
    let without: Vec<_> = listed.difference(&rows).collect();
    assert!(without.is_empty(), "these routes have no row in TABLE: {without:?}");
    let gone: Vec<_> = rows.difference(&listed).collect();
    assert!(gone.is_empty(), "these rows of TABLE have no route: {gone:?}");
}

#[tokio::test]
async fn everybody_gets_what_the_table_says() {
    let world = World::new().await;
    world.credit().await;
    let mut wrong = Vec::new();
    for row in TABLE {
        for (email, expected) in PEOPLE.into_iter().zip(row.3) {
            let gets = world.gets(row, email).await;
            if gets != expected {
                let who = email.unwrap_or("nobody");
                wrong.push(format!("{} {}: {who} gets {gets:?}", row.0, row.1));
            }
        }
    }
    world.service.close().await;
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Posts a text as a browser without scripts does. Returns the page with the count.
async fn counted(world: &World, form: &str) -> String {
    let answer = post(&world.portal, COUNT_PATH, form, None).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn a_posted_text_is_counted() {
    let world = World::new().await;
    let emoji = "%F0%9F%98%80".repeat(1_600);
    for (form, says) in [
        (
            "message=Hello&number=58+00+19+87".to_owned(),
            "(1 page at 0.05) to 58001987, a local number.",
        ),
        // A line break counts as one character, as it does for scripts.
        (
            "message=a%0D%0Ab&number=".to_owned(),
            "Left: 157 characters of this page, 157 places of this segment.",
        ),
        (
            "message=%D9%85%D8%B1&number=%2B999123".to_owned(),
            "an international number whose prefix has no price of its own.",
        ),
        (
            format!("message={emoji}&number=58001987"),
            "(10 pages at 0.05) to 58001987, a local number.",
        ),
        (format!("message={emoji}a&number="), "1 character more than 10 pages"),
        ("message=a%00b&number=".to_owned(), "The text has a NUL character"),
        (String::new(), "Write a text to see how it is counted."),
    ] {
        let page = counted(&world, &form).await;
        let start: String = form.chars().take(60).collect();
        assert!(page.contains(says), "{start}: {says}");
    }
    // Typed text is escaped, and stays in the fields.
    let page = counted(&world, "message=%3C/textarea%3E%3Cb%3E&number=%22%3E%3Cb%3E").await;
    assert!(page.contains("&lt;/textarea&gt;&lt;b&gt;"), "{page}");
    assert!(!page.contains("<b>"), "{page}");
    assert!(page.contains("value=\"&quot;&gt;&lt;b&gt;\""), "{page}");
    // A line break at the beginning is kept, although HTML parsers drop one.
    let page = counted(&world, "message=%0D%0A%26lt%3B").await;
    assert!(page.contains(">\n\n&amp;lt;</textarea>"), "{page}");
    world.service.close().await;
}

#[tokio::test]
async fn the_reference_has_every_call_and_an_anchor_for_every_reason() {
    let world = World::new().await;
    let page = || async {
        let request = Request::get("/docs").header(ACCEPT, "text/html");
        let answer = ask(&world.portal, request, None, Body::empty()).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    };
    let page = page().await;
    for reason in domain::Reason::ALL {
        let anchor = format!("id=\"reason-{}\"", reason.as_str());
        assert_eq!(page.matches(&anchor).count(), 1, "{anchor}");
    }
    let document = crate::openapi::document("http://test", &Limits::default()).unwrap();
    let paths = document["paths"].as_object().unwrap();
    for (path, operations) in paths.iter().filter(|(path, _)| path.contains("{key}")) {
        for (method, operation) in operations.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(page.contains(&format!("id=\"call-{id}\"")), "{id}");
            let call = format!("{} {path}", method.to_uppercase());
            let call = call.replace("{key}", "&lt;API_KEY&gt;");
            assert!(page.contains(&call), "{call}");
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let name = parameter["name"].as_str().unwrap();
                assert!(name == "key" || page.contains(&format!(">{name}<")), "{name}");
            }
        }
    }
    // Links lead to anchors on the page, and each ID occurs once.
    for link in page.split("href=\"#").skip(1) {
        let anchor = link.split('"').next().unwrap();
        let found = page.matches(&format!("id=\"{anchor}\"")).count();
        assert_eq!(found, 1, "{anchor}");
    }
    for snippet in [
        "curl --retry 3 http://test/sms/bulk/YOUR_KEY \\\n  --header ",
        "--form 'bulksms=@bulksms.txt'",
        "--form 'numbers=@numbers.txt'",
        "curl --retry 3 --get http://test/sms/send/YOUR_KEY \\\n  --header ",
        "--data-urlencode 'number=57000001' \\\n  --data-urlencode 'message=",
        ">query or body<",
        "The home country is Lesotho (+266).",
        "and no +: a local number in Lesotho (+266)",
        "curl --retry 3 http://test/sms/reports/YOUR_KEY/m_0000000000000",
    ] {
        assert!(page.contains(snippet), "{snippet}");
    }
    world.service.close().await;
}

#[tokio::test]
async fn a_receipt_names_the_customer() {
    let world = World::new().await;
    world.credit().await;
    let cookie = world.sign_in("customer@example.org").await;
    let form = "name=Acme+Ltd&address=Main+Street%0D%0AMaseru&tax_number=T-1";
    let saved = post(&world.portal, "/fn/set-billing-details", form, Some(cookie.clone())).await;
    assert!(saved.status().is_redirection() || saved.status().is_success());
    for path in ["/applications/{reference}/deposits/b2", "/applications/{reference}/statement"] {
        let request = Request::get(world.filled(path)).header(ACCEPT, "text/html");
        let answer = ask(&world.portal, request, Some(cookie.clone()), Body::empty()).await;
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        let page = String::from_utf8(body.to_vec()).unwrap();
        for text in ["Acme Ltd", "Main Street", "Maseru", "Tax number: T-1", "2.50"] {
            assert!(page.contains(text), "{path}: {text}: {page}");
        }
    }
    world.service.close().await;
}

#[tokio::test]
async fn staff_import_a_bank_statement() {
    let world = World::new().await;
    let cookie = world.sign_in(STAFF_WITH_FACTOR).await;
    let statement = import(&world, &cookie, "bank-1", "1,50").await;
    let lines = world.service.money().statement_lines(statement.id, None, None, 1).await.unwrap();
    assert_eq!(lines.items[0].line.amount.to_string(), "1.5");
    assert!(statement.confirmed_at.is_none());
}

/// Sends a statement with one payment to the world's application. Returns the stored statement.
async fn import(world: &World, cookie: &str, bank_id: &str, amount: &str) -> BankStatement {
    let form = format!(
        "--cut\r\nContent-Disposition: form-data; name=\"file\"; filename=\"bank.csv\"\r\n\r\n\
         id;reference;amount\r\n{bank_id};{};{amount}\r\n\r\n--cut--\r\n",
        world.reference
    );
    let request = Request::post("/support/import/file")
        .header(CONTENT_TYPE, "multipart/form-data; boundary=cut");
    let answer = ask(&world.portal, request, Some(cookie.to_owned()), Body::from(form)).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    let statement = world.service.money().bank_statements().await.unwrap().remove(0);
    let expected = format!("/support/import?statement={}", statement.id);
    assert_eq!(answer.headers()[LOCATION], expected.as_str());
    statement
}

#[tokio::test]
async fn a_bank_line_in_conflict_is_pending_work_until_it_is_done() {
    let world = World::new().await;
    let cookie = world.sign_in(STAFF_WITH_FACTOR).await;
    let mut statement = 0;
    for amount in ["1,50", "2,00"] {
        statement = import(&world, &cookie, "bank-1", amount).await.id;
        let money = world.service.money();
        money.confirm_statement(Actor::CommandLine, statement).await.unwrap();
        money.credit_statements().await.unwrap();
    }
    let page = async |path: &str| shown(&world, &cookie, path).await;
    let pending = "<a href=\"/support/import\">Bank lines that weren't credited</a>";
    let home = page("/support").await;
    let (_, row) = home.split_once(pending).unwrap();
    let (row, _) = row.split_once("</tr>").unwrap();
    assert!(row.contains(">1<"), "{home}");
    let counted = ">Import</a> <span title=\"1 waiting\" class=\"count\">";
    assert!(home.contains(counted), "{home}");
    let list = page("/support/import").await;
    let stored = format!("1.50 for {}", world.reference);
    for shown in [stored.as_str(), "bank-1", "Mark as done", "2.00"] {
        assert!(list.contains(shown), "{shown}: {list}");
    }
    let form = format!("statement={statement}&line=2");
    // The second time changes nothing.
    for _ in 0..2 {
        let answer = post(&world.portal, "/fn/handle-bank-line", &form, Some(cookie.clone())).await;
        assert!(answer.status().is_redirection() || answer.status().is_success());
    }
    assert!(!page("/support/import").await.contains("Mark as done"));
    assert!(!page("/support").await.contains(counted));
    let filter = AuditFilter {
        subject: Some(statement.to_string()),
        action: Some("statement.line".to_owned()),
        limit: 9,
        ..AuditFilter::default()
    };
    let entries = world.service.support().audit(&filter).await.unwrap().items;
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].detail.as_deref(), Some("line 2"));
    world.service.close().await;
}

/// Returns a multipart form with these fields, and without its end.
fn open_form(fields: &[(&str, &[u8])]) -> Vec<u8> {
    let mut form = Vec::new();
    for (name, content) in fields {
        let head = format!(
            "--cut\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"f.csv\"\r\n\r\n"
        );
        form.extend_from_slice(head.as_bytes());
        form.extend_from_slice(content);
        form.extend_from_slice(b"\r\n");
    }
    form
}

impl World {
    /// Posts a file to the page that checks files.
    async fn check_file(&self, kind: &str, cookie: &str, body: Body) -> (StatusCode, String) {
        let path = format!("/applications/{}/check-file{kind}", self.reference);
        let request = Request::post(path).header(CONTENT_TYPE, "multipart/form-data; boundary=cut");
        let answer = ask(&self.portal, request, Some(cookie.to_owned()), body).await;
        let status = answer.status();
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Checks a file. Returns the text of the page, without tags.
    async fn checked(&self, kind: &str, fields: &[(&str, &[u8])]) -> String {
        let cookie = self.sign_in("customer@example.org").await;
        let form = [open_form(fields), b"--cut--\r\n".to_vec()].concat();
        // Like from a connection, a large form arrives in pieces.
        let pieces: Vec<_> =
            form.chunks(16 * 1024).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect();
        let body = Body::from_stream(futures_util::stream::iter(pieces));
        let (status, page) = self.check_file(kind, &cookie, body).await;
        assert_eq!(status, StatusCode::OK);
        let main = page.split("<main").nth(1).and_then(|main| main.split("</main>").next());
        let mut text = String::new();
        for part in main.unwrap().split('<').skip(1) {
            text.push_str(part.split_once('>').unwrap().1);
            text.push(' ');
        }
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

#[tokio::test]
async fn a_file_is_checked_and_nothing_is_kept() {
    let world = World::new().await;
    let access = {
        let reference = Reference::parse(&world.reference).unwrap();
        world.service.webhooks().access_of(world.account, reference, KeyKind::Live).await.unwrap()
    };
    let number = domain::Number::parse("57000003").unwrap();
    let (change, author) = (service::OptOutChange::Add(number), service::OptOutAuthor::Program);
    let applications = world.service.applications();
    applications.change_opt_outs(&access, change, author, None).await.unwrap();
    let long = "a".repeat(161);
    let file = format!(
        "57000001,Hi\n+26657000001,{long}\n57000002,\"a\nb\"\n057000009,c\n57000003,d\n57000002,e\n"
    );
    let page = world.checked("", &[("bulksms", file.as_bytes())]).await;
    for says in [
        "The file has 6 rows, and none is bad.",
        "Local 4 4 0.20 International 2 3 0.75 Total 6 7 0.95",
        "Your balance is 0.00 USD, so 0.95 USD are missing.",
        "1 The number is the country code 266 and 8 digits. Without the code it is local, and \
         costs less. 2 looks_local",
        "1 The number begins with 0, but no country code does. 5 leading_zero",
        "1 The number has 7 or 9 digits, where a local number has 8. 5 near_local",
        // +26657000001 is the number in the first line.
        "2 An earlier row has the same number. The recipient gets both messages, and you pay for \
         both. 2, 7",
        "The price of these rows, 0.05 USD, is reserved with the others and then released. 6 \
         opted_out",
    ] {
        assert!(page.contains(says), "{says}: {page}");
    }
    let many = "57000001\n".repeat(7);
    let fields = [("message", "a\r\nb".as_bytes()), ("numbers", many.as_bytes())];
    let page = world.checked("?file=numbers", &fields).await;
    assert!(page.contains("The file has 7 rows, and none is bad."), "{page}");
    assert!(page.contains("2, 3, 4, 5, 6 …") && page.contains("Total 7 7 0.35"), "{page}");
    assert!(page.contains("a b File"), "the message stays in its field: {page}");
    let fields = [("message", "a".repeat(1_601)), ("numbers", many)];
    let fields = fields.each_ref().map(|(name, text)| (*name, text.as_bytes()));
    let page = world.checked("?file=numbers", &fields).await;
    assert!(page.contains("The message has more than 1600 characters. Shorten it."), "{page}");
    let page = world.checked("", &[]).await;
    assert!(page.contains("Choose a file."), "{page}");
    let left = world.service.applications().of_account(world.account).await.unwrap();
    let messages = service::MessageFilter { limit: 9, ..Default::default() };
    let messages = world.service.messages().account_messages(world.account, None, &messages).await;
    assert_eq!((left.len(), messages.unwrap().items.len()), (1, 1), "those of World::new");
    world.service.close().await;
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_explained() {
    let world = World::new().await;
    let utf16: Vec<u8> =
        "\u{feff}57000001,Hi\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (file, says) in [
        (
            &utf16[..],
            &["We can't read this file.", "The file is written in UTF-16", "1: 57000001,Hi"][..],
        ),
        (b"PK\x03\x04\x14\0\x06\0", &["workbook (.xlsx or .ods)", "CSV UTF-8 (Comma delimited)"]),
        (
            b"Number;Text\r\n57000001;caf\xe9\r\n57000002;a\r\n57000003;b\r\n57000004,c",
            &[
                "The file has 5 rows, and 4 are bad. The API would refuse the whole file, and",
                "The first line starts with words, as header lines do",
                "probably Windows-1252",
                "between number and message. (3 rows, the first in line 2)",
                "2: 57000001;café 3: 57000002;a",
                "Total 1 1 0.05",
                "Quote all text cells",
                "Google Sheets",
            ],
        ),
        (b"57000001,a\r57000002,b\r", &["(Macintosh)", "1: 57000001,a␍57000002,b"]),
        (
            b"5.7E+07,a\n",
            &["A spreadsheet wrote the number with an exponent", "1: 5.7E+07,a", "as text before"],
        ),
        (b"", &["The file is empty."]),
        (b"\xef\xbb\xbf\r\n\n", &["The file is empty."]),
    ] {
        let page = world.checked("", &[("bulksms", file)]).await;
        for says in says {
            assert!(page.contains(says), "{says}: {page}");
        }
    }
    let bad = "x\n".repeat(30);
    let page = world.checked("", &[("bulksms", bad.as_bytes())]).await;
    assert!(page.contains("These are the first 20."), "{page}");
    let many = "1111\n".repeat(1_000_001);
    let fields = [("message", &b"Hi"[..]), ("numbers", many.as_bytes())];
    let page = world.checked("?file=numbers", &fields).await;
    assert!(page.contains("The file has more than 1000000 rows. Split it"), "{page}");
    world.service.close().await;
}

#[tokio::test]
async fn an_application_checks_two_files_at_once() {
    let world = Arc::new(World::new().await);
    let cookie = world.sign_in("customer@example.org").await;
    let checks: Vec<_> = (0..2)
        .map(|_| {
            let (begun, is_begun) = tokio::sync::oneshot::channel();
            let mut begun = Some(begun);
            let mut pieces =
                vec![b"57000002,Hi\n".to_vec(), open_form(&[("bulksms", b"57000001,Hi")])];
            // Asks for a third piece once the form and the file have begun.
            let stream = futures_util::stream::poll_fn(move |_| {
                if let Some(piece) = pieces.pop() {
                    return std::task::Poll::Ready(Some(Ok::<_, std::io::Error>(piece)));
                }
                if let Some(begun) = begun.take() {
                    begun.send(()).unwrap();
                }
                std::task::Poll::Pending
            });
            let (world, cookie) = (Arc::clone(&world), cookie.clone());
            let body = Body::from_stream(stream);
            let check = tokio::spawn(async move { world.check_file("", &cookie, body).await });
            (check, is_begun)
        })
        .collect();
    let mut tasks = Vec::new();
    for (check, is_begun) in checks {
        is_begun.await.unwrap();
        tasks.push(check);
    }
    let form = [open_form(&[("bulksms", b"57000001,Hi")]), b"--cut--\r\n".to_vec()].concat();
    let (status, page) = world.check_file("", &cookie, Body::from(form.clone())).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    assert!(page.contains("2 files of this application are being checked."), "{page}");
    let ended = tasks.pop().unwrap();
    ended.abort();
    assert!(ended.await.unwrap_err().is_cancelled());
    let (status, page) = world.check_file("", &cookie, Body::from(form)).await;
    assert!(status == StatusCode::OK && page.contains("The file has 1 row, "), "{page}");
    tasks.pop().unwrap().abort();
    world.service.close().await;
}

/// Creates a new account with an application for SMS, and signs in.
async fn shop(world: &World, sender: Option<&str>) -> (service::NewApplication, String) {
    let email = Email::parse("shop@example.org").unwrap();
    let password = Password::parse(PASSWORD).unwrap();
    let accounts = world.service.accounts();
    let account = accounts.add_account(&Actor::System, &email, &password, false).await.unwrap();
    let sender = sender.map(|name| domain::SenderName::parse(name).unwrap());
    let applications = world.service.applications();
    let creating = applications.create_application(account.id, Category::Sms, sender.as_ref());
    (creating.await.unwrap(), world.sign_in("shop@example.org").await)
}

/// Like [`shop`], with an Active application that has sent six messages to a number.
async fn sending_shop(world: &World) -> (service::NewApplication, String) {
    let (new, cookie) = shop(world, None).await;
    world.service.applications().approve(&Actor::System, new.reference).await.unwrap();
    let deposit = DepositRequest {
        bank_id: "b3".to_owned(),
        reference: new.reference.to_string(),
        amount: Money::from_micros(1_000_000),
    };
    world.service.money().add_deposit(&Actor::System, &deposit).await.unwrap();
    for _ in 0..6 {
        let send = SendRequest {
            key: new.live_key.clone(),
            number: domain::Number::parse("57000001").unwrap(),
            message: domain::MessageText::parse("Hi".to_owned(), 1).unwrap(),
            requestid: None,
            schedule: domain::Schedule::default(),
            idempotency: None,
            dry_run: false,
            origin: Origin::default(),
        };
        world.service.messages().send(send).await.unwrap();
    }
    (new, cookie)
}

#[tokio::test]
async fn the_addresses_that_used_a_key_can_be_filled_into_the_limits() {
    let world = World::new().await;
    let applications = world.service.applications();
    let (new, cookie) = shop(&world, Some("Shop")).await;
    let page = async |path: &str| {
        let request = Request::get(path).header(ACCEPT, "text/html");
        let answer = ask(&world.portal, request, Some(cookie.clone()), Body::empty()).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    };
    for address in ["192.0.2.7", "2001:db8::1"] {
        applications.note_key_use(&new.live_key, Some(address.parse().unwrap()));
    }
    applications.store_key_uses().await.unwrap();
    let settings = format!("/applications/{}/settings", new.reference);
    let link = format!("{settings}?addresses=192.0.2.7%2C2001%3Adb8%3A%3A1#limits");
    let keys = page(&format!("/applications/{}/keys", new.reference)).await;
    assert!(keys.contains(&format!("href=\"{link}\"")), "{keys}");
    let filled = page(link.trim_end_matches("#limits")).await;
    assert!(filled.contains("value=\"192.0.2.7, 2001:db8::1\""), "{filled}");
    assert!(filled.contains("but not saved yet"));
    let saved = applications.send_limits(new.reference).await.unwrap();
    assert_eq!(saved.addresses, []);
    // A text that is no list of addresses fills in nothing.
    for text in ["x", "1.2.3.4/33", "%22%3E%3Cb%3E"] {
        let page = page(&format!("{settings}?addresses={text}")).await;
        assert!(!page.contains("but not saved yet"), "{page}");
    }
    world.service.close().await;
}

#[tokio::test]
async fn the_settings_show_what_limits_would_have_refused() {
    let world = World::new().await;
    let applications = world.service.applications();
    let (new, cookie) = shop(&world, Some("Shop")).await;
    let page = async |query: &str| {
        let path = format!("/applications/{}/settings{query}", new.reference);
        let request = Request::get(&path).header(ACCEPT, "text/html");
        let answer = ask(&world.portal, request, Some(cookie.clone()), Body::empty()).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    };
    let shown = page("").await;
    for sentence in [
        "the 0 live messages of the last 7 days",
        "At 5 an hour to a recipient: 0 would have been refused.",
        "With quiet hours 21:00-08:00: 0 would have waited.",
        "Without international numbers: 0 would have been refused.",
    ] {
        assert!(shown.contains(sentence), "{sentence}: {shown}");
    }
    assert!(!shown.contains("At a spend of"));
    let tried = page("?try_hour=7&try_spend=1.5&try_day=x&try_quiet=").await;
    for sentence in [
        "At 7 an hour to a recipient: 0",
        "At a spend of 1.5 a day: 0",
        "Messages to a recipient per day: this must be a whole number",
        "value=\"7\"",
    ] {
        assert!(tried.contains(sentence), "{sentence}: {tried}");
    }
    let saved = applications.send_limits(new.reference).await.unwrap();
    assert_eq!(saved, domain::SendLimits::default());
    world.service.close().await;
}

#[tokio::test]
async fn pages_count_what_limits_would_have_refused_and_what_codes_cost() {
    let world = World::new().await;
    let messages = world.service.messages();
    let (new, cookie) = sending_shop(&world).await;
    let own = format!("/applications/{}", new.reference);
    let page = world.page(&format!("{own}/settings?try_day=4&try_spend=0.25"), &cookie).await;
    for sentence in [
        "tried on the 6 live messages of the last 7 days",
        "At 5 an hour to a recipient: 1 would have been refused.",
        "At 4 a day to a recipient: 2 would have been refused.",
        "At a spend of 0.25 a day: 1 would have been refused.",
        "Without international numbers: 0 would have been refused.",
    ] {
        assert!(page.contains(sentence), "{sentence}: {page}");
    }

    let started = messages.authorize_start(Some(new.live_key.expose()), None).await;
    let (access, defaults) = started.ok().unwrap();
    let number = domain::Number::parse("57000002").unwrap();
    let of = StartOf::New { number, locale: None, digits: 6, ttl_s: 600, name: None };
    let (key, origin) = (new.live_key.clone(), Origin::default());
    let request = StartRequest { key, of, idempotency: None, origin };
    let started = messages.start_verification(&access.access, &defaults, request).await;
    let started = started.ok().unwrap();
    let (_, claimed) = world.service.delivery().claim(SANDBOX_CARRIER, 100).await.unwrap();
    let handed = claimed.iter().find(|handed| Some(handed.id) == started.transid).unwrap();
    let code = handed.message.as_str().split(' ').next().unwrap();
    let (typed, id) = (domain::verify::TypedCode::parse(code), started.code.unwrap().id);
    let checked = messages.check_code(&access.access, &id.to_string(), typed.unwrap(), None).await;
    assert_eq!(checked.unwrap().failure, None);
    let page = world.page(&format!("{own}/verify"), &cookie).await;
    let cost = "1 of 1 numbers were verified (100 %). A verified number cost 0.05 USD on average.";
    assert!(page.contains(cost), "{page}");
    world.service.close().await;
}

#[tokio::test]
async fn an_alarm_is_shown_until_it_is_read_and_refusals_are_counted() {
    let world = World::new().await;
    let applications = world.service.applications();
    let (new, cookie) = sending_shop(&world).await;
    let address = Some("192.0.2.7".parse().unwrap());
    let origin = Origin { address, leak: Some(domain::Leak::Browser) };
    for reason in [None, Some(Reason::InternationalDisabled), Some(Reason::InternationalDisabled)] {
        applications.note_origin(&new.live_key, origin, reason);
    }
    applications.store_alarms().await.unwrap();
    let own = format!("/applications/{}", new.reference);
    let [alarm] = &*applications.alarms(account_of(&world).await, new.reference).await.unwrap()
    else {
        panic!("no alarm")
    };
    let shown = world.page(&own, &cookie).await;
    for part in [
        "Leaked API key",
        &alarm.at.to_string(),
        "A browser used the API key. It came from 192.0.2.7.",
        &format!("<a href=\"{own}/keys\">Replace key</a>"),
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let overview = world.page("/applications", &cookie).await;
    assert!(overview.contains(&format!("{own}#alarms")), "{overview}");
    let settings = world.page(&format!("{own}/settings"), &cookie).await;
    let refused = format!("2: {} (", Reason::InternationalDisabled.sentence());
    assert!(settings.contains(&refused), "{refused}: {settings}");
    let mails = world.service.operations().mails(None, 100).await.unwrap().items;
    let mail = mails.iter().find(|mail| mail.kind == domain::MailKind::LimitAlarm).unwrap();
    assert_eq!(mail.recipient, "shop@example.org");
    assert!(mail.text.contains("It came from 192.0.2.7."), "{}", mail.text);

    let form = format!("reference={}&up_to={}", new.reference, alarm.id);
    let read = post(&world.portal, "/fn/read-alarms", &form, Some(cookie.clone())).await;
    assert!(read.status().is_success() || read.status().is_redirection());
    for path in [&own, "/applications"] {
        let shown = world.page(path, &cookie).await;
        assert!(!shown.contains("Leaked API key"), "{path}: {shown}");
    }
    world.service.close().await;
}

/// Returns the account that [`shop`] created.
async fn account_of(world: &World) -> i64 {
    let found = world.service.accounts().find_account("shop@example.org").await.unwrap();
    found.unwrap().id
}

#[tokio::test]
async fn the_keys_page_lists_the_addresses_that_used_a_key() {
    let world = World::new().await;
    let applications = world.service.applications();
    let sender = domain::SenderName::parse("Power").unwrap();
    let creating =
        applications.create_application(world.account, Category::Electricity, Some(&sender));
    let new = creating.await.unwrap();
    let path = format!("/applications/{}/keys", new.reference);
    let cookie = world.sign_in("customer@example.org").await;
    let page = async || {
        let request = Request::get(&path).header(ACCEPT, "text/html");
        let answer = ask(&world.portal, request, Some(cookie.clone()), Body::empty()).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    };
    let heading = "Addresses that used this key in the last 30 days";
    assert!(!page().await.contains(heading));
    for address in ["192.0.2.7", "2001:db8::1", "192.0.2.7"] {
        applications.note_key_use(&new.live_key, Some(address.parse().unwrap()));
    }
    applications.store_key_uses().await.unwrap();
    let page = page().await;
    assert_eq!(page.matches(heading).count(), 1, "the test key wasn't used");
    for (address, calls) in [("192.0.2.7", 2), ("2001:db8::1", 1)] {
        let row = page.split(&format!(">{address}<")).nth(1).unwrap();
        let calls = format!(">{calls}<");
        assert!(row.find(&calls).is_some_and(|at| at < 200), "{address}: {row}");
    }
    world.service.close().await;
}

#[tokio::test]
async fn staff_see_a_refused_reload_until_the_settings_are_reloaded() {
    let world = World::new().await;
    let delivery = world.service.delivery();
    let cookie = world.sign_in("staff@example.org").await;
    let page = async |path: &str| {
        let request = Request::get(path).header(ACCEPT, "text/html");
        let answer = ask(&world.portal, request, Some(cookie.clone()), Body::empty()).await;
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    };
    let error = "heliograph.toml: line 4: kind must be smpp";
    delivery.report_reload(Some(error.to_owned())).await.unwrap();
    for path in ["/support", "/support/carriers"] {
        let page = page(path).await;
        for part in [error, "earlier settings", "heliograph carrier reload"] {
            assert!(page.contains(part), "{path}, {part}: {page}");
        }
    }
    delivery.report_reload(None).await.unwrap();
    for path in ["/support", "/support/carriers"] {
        assert!(!page(path).await.contains("earlier settings"), "{path}");
    }
    world.service.close().await;
}

#[tokio::test]
async fn staff_see_the_receipts_of_a_carrier_by_hour() {
    let world = World::new().await;
    let delivery = world.service.delivery();
    let stranger = CarrierReceipt {
        message_ids: vec!["1".to_owned()],
        status: MessageStatus::Delivered,
        error: None,
        user_reference: None,
        number: String::new(),
        sender: String::new(),
        submitted_at: None,
        received_at: None,
        written: WrittenReceipt::default(),
    };
    delivery.record_carrier_receipts("sandbox", vec![stranger]).await.unwrap();
    let answered = |id, outcome| Submitted {
        id: Transid(id),
        application_id: ApplicationId(1),
        lease: Lease {
            token: 1,
            shard: Shard::FIRST,
            until: Timestamp::from_unix_ms(0),
            not_after: Instant::now(),
        },
        segments: 1,
        outcomes: vec![(1, outcome)],
    };
    let refused = SubmitOutcome::Refused { error: "refused".to_owned() };
    let accepted = SubmitOutcome::Accepted { carrier_message_id: None };
    let answers = vec![answered(1, accepted), answered(2, refused)];
    delivery.record_submitted("sandbox", answers).await.unwrap();
    delivery.store_carrier_figures().await.unwrap();
    let cookie = world.sign_in("staff@example.org").await;
    let path = "/support/carriers/sandbox/receipts";
    let request = Request::get(path).header(ACCEPT, "text/html");
    let answer = ask(&world.portal, request, Some(cookie), Body::empty()).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    let page = String::from_utf8(body.to_vec()).unwrap();
    let title = "2 submits, 1 of them not accepted; the table has the figures by hour";
    let unmatched = "1 receipt matched no message.";
    for part in [title, "There were no receipts.", unmatched, "fill-answers-bad"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    world.service.close().await;
}

/// Posts a form from a page as a browser without scripts does. Returns the cookies that the browser
/// has then, and the page to which the form comes back.
async fn returned(
    world: &World,
    cookie: &str,
    (page, function): (&str, &str),
    form: String,
) -> (String, String) {
    let request = Request::post(function)
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(ACCEPT, "text/html")
        .header(CONTENT_LENGTH, form.len())
        .header(REFERER, format!("http://test{page}"));
    let answer = ask(&world.portal, request, Some(cookie.to_owned()), Body::from(form)).await;
    assert_eq!(answer.status(), StatusCode::FOUND);
    let kept = answer.headers().get_all(SET_COOKIE).into_iter();
    let kept = kept.filter_map(|kept| kept.to_str().ok()?.split(';').next());
    let kept: Vec<_> = kept.collect();
    // A form never makes a new session.
    let is_known = |set: &&str| set.starts_with("heliograph-form=") || **set == *cookie;
    assert!(kept.iter().all(is_known), "{kept:?}");
    let kept = kept.into_iter().find(|kept| kept.starts_with("heliograph-form=")).unwrap();
    assert!(kept.len() < 4000, "{}", kept.len());
    let cookies = format!("{cookie}; {kept}");
    let shown = shown(world, &cookies, page).await;
    (cookies, shown)
}

async fn shown(world: &World, cookies: &str, page: &str) -> String {
    let request = Request::get(page).header(ACCEPT, "text/html");
    let answer = ask(&world.portal, request, Some(cookies.to_owned()), Body::empty()).await;
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    String::from_utf8(body.to_vec()).unwrap().replace("<!>", "")
}

#[tokio::test]
async fn a_refused_form_without_scripts_names_every_fault_and_keeps_long_texts() {
    let world = World::new().await;
    let cookie = world.sign_in("customer@example.org").await;
    let page = world.filled("/applications/{reference}/settings");
    let form = world.filled(
        "reference={reference}&traffic_pumping=alarm&leaked_key=alarm&per_recipient_hour=many\
         &spend_per_day=1,000&quiet_hours=21:00-08:00",
    );
    let (_, shown_page) = returned(&world, &cookie, (&page, "/fn/set-limits"), form).await;
    assert_eq!(shown_page.matches("aria-invalid=\"true\"").count(), 2, "{shown_page}");
    for text in [
        "Correct these fields: Messages to a recipient per hour, Spend per day.",
        "This must be a whole number from 1 to 1000000, or empty for no limit.",
        "This must be an amount above 0 like 1000.50",
        "value=\"1,000\"",
        "value=\"many\"",
        "value=\"21:00-08:00\"",
    ] {
        assert!(shown_page.contains(text), "{text}: {shown_page}");
    }

    let cookie = world.sign_in(STAFF_WITH_FACTOR).await;
    let page = world.filled("/support/accounts/{account}");
    let note = "A note that is much longer than it may be. ".repeat(200);
    let form = format!("id={}&text={}", world.account, note.replace(' ', "+"));
    let (cookies, shown_page) = returned(&world, &cookie, (&page, "/fn/add-note"), form).await;
    assert!(shown_page.contains(note.trim_end()), "{shown_page}");
    // It comes back once.
    let again = shown(&world, &cookies, &page).await;
    assert!(!again.contains("A note that is"), "{again}");
    let form = format!("id={}&text={}", world.account, note.repeat(5).replace(' ', "+"));
    let (_, shown_page) = returned(&world, &cookie, (&page, "/fn/add-note"), form).await;
    assert!(!shown_page.contains("A note that is"), "too long to keep: {shown_page}");

    // Strangers can't store text, whatever session they claim to have.
    let (name, _) = cookie.split_once('=').unwrap();
    let claimed = format!("{name}={}", tower_sessions::session::Id::default());
    let form = format!("email={}&new_password=x", "x".repeat(10_000));
    let (_, shown_page) = returned(&world, &claimed, ("/register", "/fn/register"), form).await;
    assert!(!shown_page.contains("xxxx"), "{shown_page}");
    world.service.close().await;
}

#[tokio::test]
async fn no_page_has_an_id_twice() {
    let world = World::new().await;
    world.credit().await;
    let mut twice = Vec::new();
    for email in ["customer@example.org", STAFF_WITH_FACTOR] {
        let cookie = world.sign_in(email).await;
        for (method, path, arguments, _) in &TABLE {
            if *method != "GET" || path.starts_with("/fn/") {
                continue;
            }
            let target = world.filled(&format!("{path}?{arguments}"));
            let request = Request::get(&target).header(ACCEPT, "text/html");
            let answer = ask(&world.portal, request, Some(cookie.clone()), Body::empty()).await;
            let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
            // The others are files and streams.
            if !kind.is_some_and(|kind| kind.starts_with("text/html")) {
                continue;
            }
            let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
            let page = String::from_utf8(body.to_vec()).unwrap();
            let mut seen = BTreeSet::new();
            for id in page.split(" id=\"").skip(1).filter_map(|after| after.split('"').next()) {
                if !seen.insert(id) {
                    twice.push(format!("{target}: {id}"));
                }
            }
        }
    }
    world.service.close().await;
    assert!(twice.is_empty(), "{twice:#?}");
}
