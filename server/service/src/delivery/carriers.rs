//! Carriers as operators see them: their state, drain and resume.

use domain::Timestamp;
use domain::records::{CarrierRecord, CarrierState, ConnectionRecord, ConnectionState};

use crate::error::{Refusal, Result};
use crate::store::audit::{self, Actor, Change};
use crate::store::gate::Priority;
use crate::store::{carriers, queue};
use crate::wakes::Wake;
use crate::{Service, run_detached};

/// How long a connection's state counts: an older state isn't kept up to date by any process.
const STATE_HOLDS_MS: i64 = 15_000;

impl Service {
    /// Every carrier that is set up, by name, with the messages that wait for it and the state of
    /// its connections.
    ///
    /// # Errors
    /// `Failed` when the database can't be read.
    pub async fn carriers(&self) -> Result<Vec<CarrierRecord>> {
        let now = self.now();
        let mut conn = self.store().read().await?;
        let mut connections = carriers::connections(&mut conn).await?;
        connections.retain(|c| now.ms_since(c.updated_at) <= STATE_HOLDS_MS);
        let mut rows = carriers::all(&mut conn).await?;
        drop(conn);
        let mut found = Vec::new();
        for carrier in &self.inner.router.network.carriers {
            let name = carrier.name.clone();
            let row = rows.remove(&name).unwrap_or_default();
            let waiting = self.in_each_home(|home| async move {
                let mut conn = self.store().read_at(home).await?;
                queue::waiting(&mut conn, &carrier.name).await
            });
            let waiting = waiting.await?;
            let oldest_waiting_at = waiting.iter().filter_map(|(oldest, _)| *oldest).min();
            let waiting = waiting.iter().map(|(_, n)| n).sum();
            let connections: Vec<_> = connections
                .iter()
                .filter(|connection| connection.carrier == name)
                .cloned()
                .collect();
            found.push(CarrierRecord {
                name,
                state: state(row.drained_at, &connections),
                drained_at: row.drained_at,
                waiting,
                oldest_waiting_at,
                receipts_parked: row.receipts_parked,
                receipts_matched: row.receipts_matched,
                connections,
            });
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// Hands a carrier no more messages until it is resumed. The carrier keeps what it has, and
    /// messages that wait for it take another route where there is one. False when the carrier was
    /// drained before.
    ///
    /// # Errors
    /// `NoSuchCarrier`.
    pub async fn drain_carrier(&self, actor: &Actor, name: &str) -> Result<bool> {
        self.change_carrier(*actor, name, true).await
    }

    /// Ends a drain; false when the carrier wasn't drained.
    ///
    /// # Errors
    /// `NoSuchCarrier`.
    pub async fn resume_carrier(&self, actor: &Actor, name: &str) -> Result<bool> {
        self.change_carrier(*actor, name, false).await
    }

    async fn change_carrier(&self, actor: Actor, name: &str, drain: bool) -> Result<bool> {
        let known = &self.inner.router.network.carriers;
        if !known.iter().any(|carrier| carrier.name == name) {
            return Err(Refusal::NoSuchCarrier.into());
        }
        let (service, name) = (self.clone(), name.to_owned());
        run_detached(async move {
            let now = service.now();
            let mut tx = service.store().begin().await?;
            tx.asked_from(&service.client.address);
            carriers::ensure(&mut tx, &name).await?;
            let (changed, action) = if drain {
                (carriers::drain(&mut tx, &name, now).await?, "carrier.drain")
            } else {
                (carriers::resume(&mut tx, &name).await?, "carrier.resume")
            };
            if changed {
                let change = if drain {
                    Change::of("in use", "drained")
                } else {
                    Change::of("drained", "in use")
                };
                audit::insert_change(&mut tx, now, &actor, action, &name, change).await?;
                tx.commit().await?;
                service.inner.wake(Wake::Drained);
            }
            Ok(changed)
        })
        .await
    }

    /// The connections that other processes have now.
    ///
    /// # Errors
    /// `Failed` when the database can't be read.
    pub async fn connections_elsewhere(&self) -> Result<Vec<ConnectionRecord>> {
        let now = self.now();
        let mut conn = self.store().read().await?;
        let mut connections = carriers::connections(&mut conn).await?;
        let node = self.inner.node.slot();
        connections.retain(|c| c.node != node && now.ms_since(c.updated_at) <= STATE_HOLDS_MS);
        Ok(connections)
    }

    /// The names of the carriers that are drained.
    ///
    /// # Errors
    /// `Failed` when the database can't be read.
    pub async fn drained_carriers(&self) -> Result<Vec<String>> {
        let mut conn = self.store().read().await?;
        let rows = carriers::all(&mut conn).await?;
        let drained = rows.into_iter().filter(|(_, row)| row.drained_at.is_some());
        let names: Vec<_> = drained.map(|(name, _)| name).collect();
        for name in &names {
            self.inner.scan_starts.forget(name);
        }
        Ok(names)
    }

    /// Stores the state of this process's connections, for people who look.
    ///
    /// # Errors
    /// `Failed` or `Uncertain` when the database can't be written.
    pub async fn report_connections(&self, connections: Vec<ConnectionRecord>) -> Result<()> {
        let service = self.clone();
        run_detached(async move {
            let now = service.now();
            let mut tx = service.store().begin_as(Priority::Bulk).await?;
            let node = service.inner.node.slot();
            carriers::write_connections(&mut tx, &connections, node, now).await?;
            tx.commit().await
        })
        .await
    }
}

fn state(drained_at: Option<Timestamp>, connections: &[ConnectionRecord]) -> CarrierState {
    let bound = |c: &ConnectionRecord| c.state == ConnectionState::Bound;
    match drained_at {
        Some(_) => CarrierState::Drained,
        None if connections.iter().any(bound) => CarrierState::Up,
        None => CarrierState::Down,
    }
}
