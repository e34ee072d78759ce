//! Uploads for the tests.

use domain::records::BatchRecord;
use domain::{ApiKey, BatchId, BulkMode, BulkWriting, Schedule};
use service::{AcceptedBatch, BatchRequest, IdempotencyKey, SendError, Service};

use crate::world::{Customer, World};

/// Builds a file with this many messages of one page.
pub fn rows(count: usize) -> String {
    (0..count).fold(String::new(), |file, n| file + &format!("{:08},hello {n}\n", n + 10))
}

/// Uploads a file in chunks of a few bytes, and accepts it as a batch.
pub async fn upload(
    service: &Service,
    key: &ApiKey,
    idempotency: Option<&str>,
    file: &str,
    order: BatchRequest,
) -> Result<AcceptedBatch, SendError> {
    let idempotency = idempotency.map(|key| IdempotencyKey::parse(key).unwrap());
    let ticket = service
        .messages()
        .begin_bulk(Some(key.expose()), idempotency)
        .await
        .map_err(SendError::Refused)?;
    let mode = match order.message {
        Some(_) => BulkMode::OneToMany,
        None => BulkMode::OneToOne,
    };
    let mut upload = ticket.upload(mode, BulkWriting::Plain).await.unwrap();
    for piece in file.as_bytes().chunks(7) {
        upload.write(piece).await.unwrap();
    }
    let spooled = upload.finish().await.unwrap();
    service.messages().accept_batch(&ticket, spooled, order).await
}

/// A request without options.
pub fn plain() -> BatchRequest {
    BatchRequest { message: None, requestid: None, schedule: Schedule::default(), dry_run: false }
}

/// Uploads a file with the live key, which must be accepted.
pub async fn accepted(world: &World, customer: &Customer, file: &str) -> BatchId {
    upload(&world.service, &customer.live, None, file, plain()).await.unwrap().batchid.unwrap()
}

pub async fn batch(world: &World, customer: &Customer, id: BatchId) -> BatchRecord {
    let access = world.access(&customer.live).await;
    world.service.messages().batch(&access, id).await.unwrap().unwrap()
}
