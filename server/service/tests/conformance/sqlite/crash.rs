//! The upload files that a killed process leaves behind.

use crate::database::Backend;
use crate::uploads::{accepted, batch, rows};
use crate::world::World;
use domain::MessageStatus;

/// Returns the number of upload files.
fn spools(world: &World) -> usize {
    let folder = world.folder().join("data/spool");
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

#[tokio::test]
async fn after_a_crash_accepted_uploads_go_on_and_unfinished_files_are_removed() {
    let world = World::new(Backend::Sqlite).await;
    let customer = world.active("one@example.org", "400").await;
    let id = accepted(&world, &customer, &rows(4500)).await;
    world.service.messages().expand(id).await.unwrap();
    let ticket =
        world.service.messages().begin_bulk(Some(customer.live.expose()), None).await.unwrap();
    let mut cut_off =
        ticket.upload(domain::BulkMode::OneToOne, domain::BulkWriting::Plain).await.unwrap();
    cut_off.write(b"12345678,a\n").await.unwrap();
    assert_eq!(spools(&world), 2);
    // Simulates a killed process, whose destructors never run.
    std::mem::forget(cut_off);
    drop(ticket);
    let world = world.reopen().await;
    assert_eq!(spools(&world), 1);
    world.expand_all().await;
    assert_eq!(batch(&world, &customer, id).await.counts.get(MessageStatus::Queued), 4500);
    assert_eq!(spools(&world), 0);
    world.assert_sound().await;
}
