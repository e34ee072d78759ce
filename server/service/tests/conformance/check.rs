//! The recount must see what it is there for: each case breaks one invariant by hand.

use sqlx::{AnyConnection, AssertSqlSafe, Connection as _, Executor as _};

use crate::world::World;

/// A database with something of everything in it, and a connection that may do what no verb does.
async fn tampered(statement: &str) -> (World, AnyConnection, Result<(), sqlx::Error>) {
    let world = World::new().await;
    let customer = world.active("one@example.org", "1").await;
    for _ in 0..3 {
        world.send(&customer.live, "12345678").await.unwrap();
    }
    world
        .deposit("bank-2", domain::Reference::from_number(1), "2")
        .await;
    world.assert_sound().await;
    let url = world.config().database_url;
    let mut conn = AnyConnection::connect(&url).await.unwrap();
    let done = conn
        .execute(AssertSqlSafe(statement.to_owned()))
        .await
        .map(drop);
    (world, conn, done)
}

#[tokio::test]
async fn the_ledger_and_the_audit_log_refuse_to_be_changed() {
    for statement in [
        "UPDATE transfers SET amount = amount + 1",
        "DELETE FROM transfers",
        "UPDATE audit SET actor = 'nobody'",
        "DELETE FROM audit",
        "UPDATE applications SET balance = -1",
    ] {
        let (world, _conn, done) = tampered(statement).await;
        assert!(done.is_err(), "{statement}");
        world.assert_sound().await;
    }
}

#[tokio::test]
async fn every_broken_invariant_is_found() {
    let cases = [
        ("UPDATE applications SET balance = balance + 1", "balance"),
        (
            "INSERT INTO transfers (debit_account, credit_account, amount, kind, application_id, \
          message_id, balance_after, created_at) SELECT debit_account, credit_account, amount, kind, \
          application_id, message_id, balance_after, created_at FROM transfers WHERE kind = 'charge' \
          LIMIT 1",
            "balance after it",
        ),
        (
            "INSERT INTO transfers (debit_account, credit_account, amount, kind, application_id, \
          balance_after, created_at) SELECT id, -1, 1, 'charge', id, balance - 1, 0 FROM applications",
            "between wrong accounts",
        ),
        ("UPDATE messages SET cost = cost * 2", "cost"),
        (
            "DELETE FROM messages WHERE id = (SELECT MIN(id) FROM messages)",
            "without a message",
        ),
        ("UPDATE messages SET released = cost", "released"),
        ("UPDATE messages SET status = 'delivered'", "final_at"),
        ("DELETE FROM queue", "not in the queue"),
        (
            "UPDATE messages SET status = 'expired', final_at = 1, error = 'x'",
            "queue row",
        ),
        ("UPDATE queue SET held = 1", "held"),
        (
            "UPDATE deposits SET amount = 7 WHERE bank_id = 'first of one@example.org'",
            "credited",
        ),
        (
            "DELETE FROM deposits WHERE application_id IS NULL",
            "unmatched",
        ),
        (
            "UPDATE applications SET sender_name = 'Acme', sender_state = 'accepted'",
            "another account",
        ),
        (
            "UPDATE messages SET id = id - 18014398509481984; UPDATE queue SET message_id = message_id - \
          18014398509481984",
            "after its time",
        ),
    ];
    for (statement, word) in cases {
        let (world, _conn, done) = tampered(statement).await;
        done.unwrap();
        let found = world.service.check().await.unwrap();
        assert!(
            found.iter().any(|what| what.contains(word)),
            "{statement}: {found:?}"
        );
    }
}
