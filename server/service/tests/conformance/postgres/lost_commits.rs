//! A database that lacks commits which a process has seen is held.

use domain::Timestamp;
use service::{Actor, Reconciliation, Rest, Service};
use sqlx::Executor as _;

use crate::cases::holds::{reconcile, sent_to, submit_all};
use crate::database::Backend;
use crate::sending::Sending;
use crate::world::HOUR_MS;

/// Opens a service with another data folder, and returns since when messages are held.
async fn opened_elsewhere(sending: &Sending) -> Option<Timestamp> {
    let mut config = sending.world.config();
    config.data_dir = sending.world.folder().join("other");
    let other = Service::open(config).await.unwrap();
    let since = other.operations().hold_since().await.unwrap();
    other.close().await;
    since
}

/// Sets the rows back, as a restored backup from a second ago does. A base backup of a whole server
/// is in `server/tests/nodes/restores.rs`.
async fn set_back(sending: &Sending) {
    let set = "UPDATE data_folders SET used_at = used_at - 1000 WHERE id <> 0";
    sending.world.database.connect().await.execute(set).await.unwrap();
}

async fn held_since(sending: &Sending) -> Option<Timestamp> {
    sending.world.service.operations().hold_since().await.unwrap()
}

fn rest() -> Reconciliation {
    Reconciliation { rest: Some(Rest::Send), ..Reconciliation::default() }
}

#[tokio::test]
async fn a_database_that_lacks_the_last_commit_of_a_process_is_held_once() {
    let sending = Sending::by_acme(Backend::SHARED).await;
    sending.world.pass(HOUR_MS);
    // Nothing is lost at a normal start, nor if another process has committed since.
    let sending = sending.reopen().await;
    sending.world.pass(1000);
    sending.world.service.operations().renew_node().await.unwrap();
    let sending = sending.reopen().await;
    assert_eq!(held_since(&sending).await, None);
    assert_eq!(opened_elsewhere(&sending).await, None);

    let id = sent_to(&sending, "12345671").await;
    sending.world.pass(1000);
    set_back(&sending).await;
    let sending = sending.reopen().await;
    assert!(held_since(&sending).await.is_some());
    sending.assert_nothing_due("acme").await;
    assert!(reconcile(&sending, rest()).await.ended);
    assert_eq!(submit_all(&sending).await, [id].into());

    // Another process that saw lost commits comes back later.
    sending.world.pass(1000);
    assert_eq!(opened_elsewhere(&sending).await, None);
    // While it runs, the server is set back again.
    sending.world.pass(HOUR_MS);
    sending.world.service.operations().renew_node().await.unwrap();
    set_back(&sending).await;
    sending.world.service.operations().renew_node().await.unwrap();
    assert!(held_since(&sending).await.is_some());
}

#[tokio::test]
async fn a_hold_by_command_accounts_for_lost_commits() {
    let sending = Sending::by_acme(Backend::SHARED).await;
    sending.world.pass(HOUR_MS);
    set_back(&sending).await;
    let beside = Service::open_beside(sending.world.config()).await.unwrap();
    beside.operations().begin_hold(&Actor::CommandLine).await.unwrap();
    beside.close().await;
    let since = held_since(&sending).await;
    assert!(since.is_some() && reconcile(&sending, rest()).await.ended);
    sending.world.pass(1000);
    let sending = sending.reopen().await;
    assert_eq!(held_since(&sending).await, None);
}

#[tokio::test]
async fn a_process_with_another_data_folder_knows_of_no_commits() {
    let sending = Sending::by_acme(Backend::SHARED).await;
    set_back(&sending).await;
    assert_eq!(opened_elsewhere(&sending).await, None);
    // The first one still does, although another process has committed since.
    let sending = sending.reopen().await;
    assert!(held_since(&sending).await.is_some());
}

#[tokio::test]
async fn a_clock_behind_the_last_commit_begins_one_hold_that_can_be_ended() {
    let sending = Sending::by_acme(Backend::SHARED).await;
    let operations = sending.world.service.operations();
    sending.world.pass(HOUR_MS);
    operations.renew_node().await.unwrap();
    let id = sent_to(&sending, "12345671").await;
    sending.world.pass(-HOUR_MS);
    set_back(&sending).await;
    operations.renew_node().await.unwrap();
    // The message is newer than the clock.
    assert_eq!(operations.hold().await.unwrap().map(|hold| hold.waiting), Some(1));
    sending.assert_nothing_due("acme").await;
    assert!(reconcile(&sending, rest()).await.ended);
    for _ in 0..2 {
        sending.world.pass(5000);
        operations.renew_node().await.unwrap();
        assert_eq!(held_since(&sending).await, None);
    }
    let sending = sending.reopen().await;
    assert_eq!(held_since(&sending).await, None);
    sending.world.pass(HOUR_MS);
    assert_eq!(submit_all(&sending).await, [id].into());
}

#[tokio::test]
async fn a_clock_that_was_ahead_hides_no_lost_commits() {
    let sending = Sending::by_acme(Backend::SHARED).await;
    let operations = sending.world.service.operations();
    sending.world.pass(HOUR_MS);
    operations.renew_node().await.unwrap();
    sending.world.pass(-HOUR_MS);
    let mut conn = sending.world.database.connect().await;
    conn.execute("CREATE TABLE backup AS SELECT * FROM data_folders").await.unwrap();
    sending.world.pass(5000);
    operations.renew_node().await.unwrap();
    assert_eq!(held_since(&sending).await, None);
    let restore = "UPDATE data_folders SET used_at = backup.used_at FROM backup \
                   WHERE backup.id = data_folders.id";
    conn.execute(restore).await.unwrap();
    operations.renew_node().await.unwrap();
    assert!(held_since(&sending).await.is_some());
}
