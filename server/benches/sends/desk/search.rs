//! The support desk's search in ten million messages.

use sqlx::{AssertSqlSafe, Connection as _};

use super::{accounts, add_page, applications, free_references, sign_in};
use crate::history::fill::{self, COMMON_NUMBER};
use crate::server::Server;
use crate::stored::{self, block_on};
use crate::table::Table;

/// The highest allowed p50 in milliseconds.
const SEARCH_MS: f64 = 100.0;
/// Applications besides the one with the messages. A search by number has to query each of them.
const APPLICATIONS: i64 = 1000;

pub fn measure(table: &mut Table) {
    println!("{} messages, {APPLICATIONS} more applications", fill::MESSAGES);
    let server = fill::filled(Server::start());
    let server = server.start_again(|server| {
        let first = free_references(server);
        block_on(add_applications(&server.database_url(), first));
    });
    let cookie = sign_in(&server);
    let email = server.said("/customer/email");
    let searches = [
        ("an email", email.clone()),
        ("a reference", server.reference()),
        ("a number with 10 messages", fill::NUMBERS.start.to_string()),
        ("a number with 100,000 messages", COMMON_NUMBER.to_owned()),
        ("a number without messages", "55000000".to_owned()),
        ("a request ID", format!("r{}", fill::REQUEST_IDS.end - 1)),
        ("a number within an account", format!("{email}+{COMMON_NUMBER}")),
    ];
    for (what, text) in searches {
        let path = format!("/support/search?q={}", text.replace('@', "%40"));
        let what = format!("SQLite, 10,000,000 messages: search for {what}");
        add_page(what, &server, &path, &cookie, SEARCH_MS, table);
    }
}

async fn add_applications(url: &str, first: i64) {
    let mut db = stored::connect(url).await;
    let now = stored::now_ms();
    let series = format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {APPLICATIONS})"
    );
    for statement in [accounts(&series, now), applications(&series, now, first)] {
        let adding = sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut db);
        adding.await.unwrap();
    }
    db.close().await.unwrap();
}
