//! Tests the plans of all statements on a database that is distributed over the workers of a
//! cluster. A statement that names a shard must be one task on one worker.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use domain::Prices;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, Row as _};
use testing::citus::Cluster;

use super::declared;
use crate::postgres::SESSION;
use crate::sql::Dialect;
use crate::{group_call, reports};
use service::{Clock, Config, Entropy, Limits, MailSettings, Network, Service};

const TYPES: &str = "SELECT array_to_string(parameter_types, ' ') FROM pg_prepared_statements \
                     WHERE name = 'planned'";

/// Statements that name a shard but rarely run, so that their plans don't matter. The statements of
/// the check join tables by columns other than the shard, or read tables that are only on the
/// coordinator.
const SELDOM: [&str; 10] = [
    "TAKE_REFERENCE",
    "CHARGE_HAS_A_MESSAGE",
    "DROPPED_IS_ITS_TRANSFERS",
    "BATCH_IS_ITS_MESSAGES",
    "BATCH_COUNTS_ARE_ITS_MESSAGES",
    "DAYS_ARE_THEIR_MESSAGES",
    "QUARTERS_ARE_THEIR_MESSAGES",
    "DEPOSIT_IS_CREDITED",
    "VERIFICATION_IS_ITS_MESSAGES",
    "SENDER_NAME_HAS_ITS_OWNER",
];

/// Creates a database with four shards and returns its coordinator's URL.
async fn distributed(cluster: &Cluster, name: &str, folder: &std::path::Path) -> String {
    cluster.make(name).await;
    let url = cluster.urls(name).remove(0);
    let money = |text| domain::Money::parse(text).unwrap();
    let config = Config {
        database_url: url.clone(),
        prices: Prices::new(money("0.05"), money("0.25")).unwrap(),
        currency: "USD".to_owned(),
        data_dir: folder.join("data"),
        network: Network::sandbox("266".to_owned(), "Heliograph".to_owned()),
        limits: Limits::default(),
        mail: MailSettings::default(),
        endpoints: service::EndpointRules::default(),
        opt_outs: service::OptOutSettings::default(),
        clock: Clock::fixed(Arc::new(AtomicI64::new(1_767_225_600_000))),
        entropy: Entropy::seeded(1),
    };
    Service::distribute(&config, 4, &|_| ()).await.unwrap();
    // Creates the tables of days.
    Service::open(config).await.unwrap().close().await;
    url
}

/// Returns the name and text of each statement that has a plan, and whether it names a shard. A
/// COPY has no plan.
fn statements() -> impl Iterator<Item = (&'static str, String, bool)> {
    let declared = declared()
        .filter(|(_, sql)| !sql.postgres.is_empty() && !sql.postgres.contains("FROM STDIN"));
    let declared = declared.map(|(name, sql)| (name, sql.postgres.to_owned(), sql.names_shard));
    let lists = reports::tests::every_list_sql(Dialect::Postgres).into_iter();
    declared.chain(lists.map(|sql| ("list", sql, true))).chain([(
        "RUN",
        group_call::RUN.to_owned(),
        true,
    )])
}

/// Returns a value of type `of_type` that the statement accepts for this parameter.
fn value(sql: &str, number: usize, of_type: &str) -> String {
    let is_used = |cast: &str| sql.contains(&format!("${number}{cast}"));
    let value = match of_type {
        _ if of_type.ends_with("[]") => "{}",
        "text" if is_used("::text::regclass") => "applications",
        "text" if is_used("::text::bigint[]") => "{1}",
        "text" if is_used("::text::json") => "[]",
        _ => "1",
    };
    format!("'{value}'::{of_type}")
}

/// Returns the steps of a statement's plan.
async fn plan(conn: &mut PgConnection, sql: &str) -> Result<Vec<String>, sqlx::Error> {
    let run = |sql: String| sqlx::raw_sql(AssertSqlSafe(sql));
    conn.execute(run(format!("PREPARE planned AS {sql}"))).await?;
    let types: String = conn.fetch_one(run(TYPES.to_owned())).await?.get(0);
    let types = types.split_whitespace().enumerate();
    let values: Vec<_> = types.map(|(place, of_type)| value(sql, place + 1, of_type)).collect();
    let values = match &values[..] {
        [] => String::new(),
        values => format!("({})", values.join(", ")),
    };
    let explained = conn.fetch_all(run(format!("EXPLAIN EXECUTE planned{values}"))).await;
    let steps = explained?.iter().map(|row| row.get::<String, _>(0)).collect();
    Ok(steps)
}

/// Returns why a plan isn't one task on one worker, or `None` if it is.
fn fault(steps: &[String]) -> Option<&'static str> {
    let has = |text: &str| steps.iter().any(|step| step.contains(text));
    let tasks = steps.iter().filter_map(|step| step.split_once("Task Count: "));
    let tasks: Vec<&str> = tasks.map(|(_, count)| count).collect();
    match tasks[..] {
        _ if has("Distributed Subplan") => Some("parts of it are sent to workers"),
        _ if has("pull to coordinator") => Some("its rows go through the coordinator"),
        [] => Some("no worker does it"),
        ["1"] => None,
        _ => Some("more than one task"),
    }
}

#[tokio::test]
#[ignore = "needs Citus, which `make test-citus` starts"]
async fn every_statement_that_names_a_shard_is_one_task_on_citus() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::given().await;
    let name = format!("statements_{}", std::process::id());
    let url = distributed(&cluster, &name, folder.path()).await;
    let mut conn = PgConnection::connect(&url).await.unwrap();
    conn.execute(SESSION).await.unwrap();
    let mut faults = Vec::new();
    for (name, sql, names_shard) in statements() {
        match plan(&mut conn, &sql).await {
            Ok(steps) if names_shard && !SELDOM.contains(&name) => {
                let fault = fault(&steps);
                faults.extend(fault.map(|fault| format!("{name}: {fault}:\n{sql}\n{steps:#?}")));
            }
            Ok(_) => {}
            Err(error) => faults.push(format!("{name}: {error}\n{sql}")),
        }
        conn.execute("DEALLOCATE ALL").await.unwrap();
    }
    conn.close().await.unwrap();
    cluster.remove(&name).await;
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n\n"));
}
