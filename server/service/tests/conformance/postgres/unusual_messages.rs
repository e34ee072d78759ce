//! The table of messages that are unknown or that ended otherwise than delivered.

use domain::MessageStatus;
use service::{MessageFilter, SANDBOX_CARRIER};
use sqlx::Row as _;

use crate::database::Backend;
use crate::network::{answered, refused, taken_as};
use crate::world::{HOUR_MS, World};

async fn noted(world: &World) -> Vec<(i64, i64)> {
    let mut conn = world.database.connect().await;
    let noted = sqlx::query("SELECT message_id, status FROM unusual_messages ORDER BY message_id");
    let rows = noted.fetch_all(&mut conn).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[tokio::test]
async fn messages_that_did_not_end_delivered_are_indexed_until_they_are_dropped() {
    let world = World::new(Backend::Postgres).await;
    let customer = world.active("one@example.org", "10").await;
    for _ in 0..3 {
        world.send(&customer.live, "12345678").await.unwrap();
    }
    let (lease, claimed) = world.service.delivery().claim(SANDBOX_CARRIER, 2).await.unwrap();
    let results = vec![answered(&claimed[0], refused()), answered(&claimed[1], taken_as("a"))];
    world.record(SANDBOX_CARRIER, &lease, results).await;
    assert_eq!(noted(&world).await, [(claimed[0].id.0, MessageStatus::Rejected.code())]);
    world.pass(49 * HOUR_MS);
    world.service.delivery().expire().await.unwrap();
    let statuses: Vec<i64> = noted(&world).await.iter().map(|(_, status)| *status).collect();
    let expired = MessageStatus::Expired.code();
    assert_eq!(statuses, [MessageStatus::Rejected.code(), expired, expired]);
    world.assert_sound().await;
    world.pass(401 * 24 * HOUR_MS);
    world.service.delivery().expire().await.unwrap();
    world.service.operations().drop_history().await.unwrap();
    assert_eq!(noted(&world).await, []);
    let access = world.access(&customer.live).await;
    let filter = MessageFilter {
        status: Some(MessageStatus::Expired),
        limit: 10,
        ..MessageFilter::default()
    };
    let page = world.service.messages().list(&access, &filter).await.unwrap();
    assert!(page.items.is_empty() && page.next.is_none());
}
