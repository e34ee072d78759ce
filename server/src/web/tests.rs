//! Tests of the portal: who has access to every page, stream and server function of the router, and
//! what pages show.

mod files;
mod forms;
mod limits;
mod pages;
mod staff;
mod world;

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::header::{ACCEPT, LOCATION};
use axum::http::{Request, StatusCode};
use axum::response::Response;

pub use self::world::service_in;
use self::world::{STAFF_WITH_FACTOR, World, ask, json, post};
use super::routes;

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
const TABLE: &[(&str, &str, &str, Row)] = &[
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
    ("POST", "/fn/ask-incident", "text=Slow", STAFF),
    ("GET", "/support/senders", "", STAFF),
    ("GET", "/fn/support-senders", "", STAFF),
    ("POST", "/fn/set-staff-list", "list=reserved-words&lines=bank", STAFF),
    ("GET", "/support/numbers", "", STAFF),
    ("GET", "/fn/support-numbers", "", STAFF),
    ("POST", "/fn/ask-number", "number=26650000001&reference={reference}", STAFF),
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
    ("GET", "/fn/support-search", "text={reference}", STAFF),
    ("GET", "/fn/support-message", "transid={transid}", STAFF),
    ("POST", "/fn/show-text", "transid={transid}", STAFF),
    ("POST", "/fn/decide-message", "transid={transid}&decision=delivered", STAFF),
    ("GET", "/fn/support-audit", "", STAFF),
    ("GET", "/support/import", "", STAFF),
    ("POST", "/support/import/file", "", STAFF),
    ("GET", "/fn/support-import", "", STAFF),
    ("POST", "/fn/confirm-statement", "statement=0", STAFF),
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

impl World {
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
    let rows = TABLE.iter().map(|(method, path, ..)| ((*method).to_owned(), (*path).to_owned()));
    let rows: BTreeSet<_> = rows.collect();
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
            let gets = world.gets(*row, email).await;
            if gets != expected {
                let who = email.unwrap_or("nobody");
                wrong.push(format!("{} {}: {who} gets {gets:?}", row.0, row.1));
            }
        }
    }
    world.service.close().await;
    assert!(wrong.is_empty(), "{wrong:#?}");
}
