//! The pages of the support desk while 100,000 cases of each kind wait, requested like a staff
//! member's browser does.

pub mod import;
pub mod search;

use std::time::Duration;

use service::{Clock, TotpSecret};
use sqlx::Connection as _;

use crate::http;
use crate::load::Talker;
use crate::measured::p50_p99;
use crate::portal;
use crate::server::Server;
use crate::stored::{self, block_on};
use crate::table::{Figure, Table, Target};

const WAITING: i64 = 100_000;
/// Requests per page, one after the other. Fewer if they take longer than [`TIME`].
const REQUESTS: usize = 100;
const TIME: Duration = Duration::from_secs(5);
/// The highest allowed p50 in milliseconds.
const PAGE_MS: f64 = 50.0;

const PAGES: [&str; 5] =
    ["/support", "/support/applications", "/support/senders", "/support/deposits", "/support/mail"];

pub fn measure(table: &mut Table) {
    println!("{WAITING} activation requests, sender names, unmatched deposits and failed mails");
    let server = Server::start().start_again(|server| {
        block_on(fill(&server.database_url(), free_references(server)));
    });
    let cookie = sign_in(&server);
    for path in PAGES {
        let what = format!("SQLite, {WAITING} waiting of each kind: {path}");
        add_page(what, &server, path, &cookie, PAGE_MS, table);
    }
}

/// Measures how long a page takes. `most` is the highest allowed p50 in milliseconds.
fn add_page(what: String, server: &Server, path: &str, cookie: &str, most: f64, table: &mut Table) {
    let mut talker = Talker::connect(server.address());
    let mut requests = portal::page(path, cookie);
    let (p50, p99) = p50_p99(talker.ask_all(&mut requests, REQUESTS, TIME));
    let bytes = talker.answer().len();
    let beside = [format!("p50 {p50:.2?} p99 {p99:.2?}, {bytes} bytes")];
    table.add_beside(what, Figure::millis(p50), Target::AtMost(most), &beside);
}

/// Returns a number before 100,000 references of which none is the demo's.
fn free_references(server: &Server) -> i64 {
    match server.reference().as_bytes()[0] {
        b'0'..=b'4' => 500_000,
        _ => 100_000,
    }
}

/// Signs in the demo's staff member with both factors and returns the cookie.
fn sign_in(server: &Server) -> String {
    let half_signed_in = portal::give_password(server, "staff");
    let secret = TotpSecret::parse(&server.said("/staff/totp_secret")).unwrap();
    let code = secret.code(Clock::system().now());
    let head = format!("{}Cookie: {half_signed_in}\r\n", http::PAGE);
    let form = format!("code={code}&recovery_code=&next=");
    let answer = http::exchange(server.address(), &http::form("/fn/sign-in-code", &head, &form));
    portal::cookie(&answer)
}

/// Inserts the rows that customers and a bank would create, for accounts with one application each.
/// Their references begin after `first`.
async fn fill(url: &str, first: i64) {
    let mut db = stored::connect(url).await;
    let now = stored::now_ms();
    let series = format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {WAITING})"
    );
    let statements = [
        "PRAGMA synchronous = OFF".to_owned(),
        "BEGIN".to_owned(),
        accounts(&series, now),
        applications(&series, now, first),
        format!(
            "INSERT INTO sender_requests (application_id, name, status, requested_at) \
             {series} SELECT 1000000 + i, 'Name' || i, 'pending', {now} - i * 1000 FROM n"
        ),
        format!(
            "INSERT INTO sender_name_owners (folded, account_id, looks) \
             {series} SELECT 'owned' || i, 1000000 + i, 'owned' || i FROM n"
        ),
        format!(
            "INSERT INTO outbox (account_id, kind, recipient, subject, body, created_at, state, \
             due_at, attempts, last_error) \
             {series} SELECT 1000000 + i, 'deposit', 'waiting' || i || '@example.org', 'Deposit', \
             'Deposit', {now} - i * 1000, 'failed', {now}, 9, '550 No such user' FROM n"
        ),
        format!(
            "INSERT INTO deposits (bank_id, reference, amount, received_at) \
             {series} SELECT 'late' || i, 'invoice ' || i, 1000000, {now} - i * 1000 FROM n"
        ),
        "COMMIT".to_owned(),
    ];
    for statement in statements {
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut db).await.unwrap();
    }
    db.close().await.unwrap();
}

/// Returns the SQL that adds an account for each number of a series.
fn accounts(series: &str, now: i64) -> String {
    format!(
        "INSERT INTO accounts (id, email, password_hash, role, created_at, password_changed_at) \
         {series} SELECT 1000000 + i, 'waiting' || i || '@example.org', '', 'customer', \
         {now} - i * 1000, {now} FROM n"
    )
}

/// Returns the SQL that adds an application to each of these accounts. Their references begin after
/// `first`.
fn applications(series: &str, now: i64, first: i64) -> String {
    format!(
        "INSERT INTO applications (id, account_id, category, reference, live_hash, test_hash, \
         status, activation_requested_at, sender_state, balance, test_balance, test_day, \
         created_at) \
         {series} SELECT 1000000 + i, 1000000 + i, 'SMS', printf('%06d', {first} + i), \
         'live' || i, 'test' || i, 'Pending', {now} - i * 1000, 'pending', 0, 0, 0, \
         {now} - i * 1000 FROM n"
    )
}
