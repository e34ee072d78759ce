//! The command `check` finds every broken invariant. Each statement here breaks one.

use domain::decision::ApplicationList;
use sqlx::{AnyConnection, AssertSqlSafe, Executor as _};

use super::verifications::{of_number, start_with};
use crate::database::Backend;
use crate::uploads::{plain, upload};
use crate::world::World;

on_each_backend![
    the_ledger_and_the_audit_log_refuse_to_be_changed,
    every_broken_invariant_is_found,
    an_application_with_a_broken_ledger_is_suspended,
];

/// Fills a database with rows of every kind, and runs a statement on it. Returns the world, a
/// connection to its database, and the result of the statement.
async fn tampered(
    backend: Backend,
    statement: &str,
) -> (World, AnyConnection, Result<(), sqlx::Error>) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    for _ in 0..3 {
        world.send(&customer.live, "12345678").await.unwrap();
    }
    // One upload is expanded, the other isn't.
    for _ in 0..2 {
        let file = "12345678,a\n12345678,b\n";
        upload(&world.service, &customer.live, None, file, plain()).await.unwrap();
    }
    let first = world.service.messages().next_unexpanded(None).await.unwrap().unwrap();
    world.service.messages().expand(first).await.unwrap();
    start_with(&world.service, &customer.test, of_number("57000001"), None).await.unwrap();
    world.deposit("bank-2", domain::Reference::from_number(1), "2").await;
    world.assert_sound().await;
    let mut conn = world.database.connect().await;
    let [column, value] = world.database.first_shard();
    let statement = statement.replace("{column}", column);
    let statement = statement.replace("{value}", value);
    let done = conn.execute(AssertSqlSafe(statement)).await.map(drop);
    (world, conn, done)
}

async fn the_ledger_and_the_audit_log_refuse_to_be_changed(backend: Backend) {
    for statement in [
        "UPDATE transfers SET amount = amount + 1",
        "DELETE FROM transfers",
        "UPDATE audit SET actor = 'nobody'",
        "DELETE FROM audit",
        "UPDATE applications SET balance = -1",
    ] {
        let (world, _conn, done) = tampered(backend, statement).await;
        if statement.contains("transfers") && !world.database.has_ledger_triggers() {
            continue;
        }
        assert!(done.is_err(), "{statement}");
        world.assert_sound().await;
    }
}

/// Statements that break an invariant, with words from the finding.
const CASES: &[(&str, &str)] = &[
    (
        "UPDATE applications SET balance = balance + 1",
        "balance is 650001, the sum of its transfers is 650000",
    ),
    (
        "INSERT INTO transfers (id{column}, debit_account, credit_account, amount, kind, \
          application_id, message_id, balance_after, created_at) \
          SELECT id + 1000{value}, debit_account, credit_account, amount, kind, \
          application_id, message_id, balance_after, created_at \
          FROM transfers WHERE kind = 2 LIMIT 1",
        "the stored balance after it is",
    ),
    (
        "INSERT INTO transfers (id{column}, debit_account, credit_account, amount, kind, \
          application_id, balance_after, created_at) \
          SELECT 1000{value}, id, -1, 1, 2, id, balance - 1, 0 FROM applications",
        "it is between the wrong accounts",
    ),
    ("UPDATE messages SET cost = cost * 2", "cost 100000, pages 1, unit price 50000"),
    ("UPDATE messages SET unit_price = 1, cost = 1", "unit price 1 was never in force"),
    (
        "UPDATE messages SET unit_price = 250000, cost = 250000, kind = 'international'",
        "but 1 transfers charge 50000",
    ),
    ("DELETE FROM messages WHERE id = (SELECT MIN(id) FROM messages)", "its message doesn't exist"),
    ("UPDATE batches SET cost = cost + 1", "it costs 100001, and its messages"),
    ("UPDATE batches SET expanded_cost = 1 WHERE expanded_rows = 0", "settled 0 and released 0"),
    ("UPDATE batches SET open = open - 1", "don't fit its messages"),
    ("UPDATE batch_counts SET n = n + 1", "queued: the stored count differs by 1 "),
    ("DELETE FROM batch_counts", "queued: the stored count differs by -2 "),
    ("UPDATE batches SET done_at = 1", "don't fit its messages"),
    ("DELETE FROM batches WHERE expanded_rows > 0", "its batch doesn't exist, or has"),
    ("DELETE FROM batches WHERE expanded_rows = 0", "its batch doesn't exist"),
    (
        "UPDATE message_days SET n = n + 1 WHERE writer = 0",
        "queued: the stored count differs by 1 from",
    ),
    (
        "UPDATE message_quarters SET n = n + 1 WHERE writer = 0",
        "figure 0: the stored count differs by 1 and the stored cost by 0 from",
    ),
    (
        "UPDATE message_quarters SET cost = cost + 1 WHERE writer = 0",
        "figure 0: the stored count differs by 0 and the stored cost by 1 from",
    ),
    ("UPDATE messages SET released = cost", "released amount is 50000, but a transfer released 0"),
    (
        "UPDATE messages SET released = cost, status = 5",
        "released although its status is delivered",
    ),
    (
        "UPDATE messages SET status = 7, final_at = 1; DELETE FROM queue",
        "but its price wasn't released",
    ),
    ("UPDATE messages SET status = 5", "delivered doesn't fit its times: final_at is null"),
    ("DELETE FROM queue", "queued, but it isn't in the queue"),
    (
        "UPDATE messages SET status = 7, final_at = 1, error = 'x'",
        "in the queue, but its status is expired",
    ),
    (
        "UPDATE deposits SET amount = 7 WHERE bank_id = 'first of one@example.org'",
        "but 1 transfers credited",
    ),
    (
        "DELETE FROM deposits WHERE application_id IS NULL",
        "unmatched money 2000000, unmatched deposits 0",
    ),
    (
        "UPDATE applications SET sender_name = 'Acme', sender_state = 'accepted'",
        "sender name belongs to another account",
    ),
    ("UPDATE verifications SET resends = 2", "sent 3 times, and has 1 messages"),
    ("UPDATE messages SET verification_id = NULL", "sent 1 times, and has 0 messages"),
    ("UPDATE verifications SET verified_at = 1", "1 messages, 0 attempts and a success"),
    ("DELETE FROM event_streams WHERE test = 1", "(test key): its events have IDs outside"),
    (
        "UPDATE event_streams SET last_id = 1 WHERE test = 0",
        "(live key): its events have IDs outside",
    ),
    ("UPDATE event_streams SET dropped_id = last_id", "its events have IDs outside"),
    ("UPDATE installation SET swept_at = swept_at + 180000000", "still queued, although"),
    (
        "UPDATE installation SET sweep_low_id = (SELECT MAX(id) FROM messages)",
        "still queued, although",
    ),
];

async fn every_broken_invariant_is_found(backend: Backend) {
    for (statement, word) in CASES {
        let (world, _conn, done) = tampered(backend, statement).await;
        done.unwrap();
        let found = world.service.operations().check().await.unwrap();
        assert!(found.iter().any(|what| what.contains(word)), "{statement}: {found:?}");
    }
}

async fn an_application_with_a_broken_ledger_is_suspended(backend: Backend) {
    let cases = [
        ("UPDATE applications SET balance = balance - 1", true),
        ("UPDATE messages SET cost = cost + 1 WHERE batch_id IS NULL", true),
        ("UPDATE applications SET low_balance = 5", false),
    ];
    for (statement, is_broken) in cases {
        let (world, _conn, done) = tampered(backend, statement).await;
        done.unwrap();
        let operations = world.service.operations();
        operations.recount().await.unwrap();
        assert_eq!(operations.broken_ledgers(), usize::from(is_broken), "{statement}");
        let suspended = world.service.applications();
        let suspended = suspended.application_list(ApplicationList::Suspended, None, 2);
        let suspended = suspended.await.unwrap().items;
        assert_eq!(suspended.len(), usize::from(is_broken), "{statement}");
        // The second run begins again, with an application that is suspended already.
        operations.recount().await.unwrap();
        operations.recount().await.unwrap();
        assert_eq!(operations.broken_ledgers(), usize::from(is_broken), "{statement}");
    }
}
