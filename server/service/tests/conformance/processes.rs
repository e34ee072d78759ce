//! Other processes on a world's database.

use service::{Config, Entropy, Limits, OpenError, Service};

use crate::world::World;

/// Starts another process on the world's database.
pub async fn peer(world: &World, number: u64) -> Service {
    peer_with(world, number, Limits::default()).await
}

pub async fn peer_with(world: &World, number: u64, limits: Limits) -> Service {
    open(world, number, limits).await.ok().unwrap()
}

pub async fn open(world: &World, number: u64, limits: Limits) -> Result<Service, OpenError> {
    let config = Config { limits, entropy: Entropy::seeded(1_000_000 + number), ..world.config() };
    Service::open(config).await
}
