//! The state of carriers as operators see it, and draining and resuming them.

use std::collections::BTreeSet;

use domain::Timestamp;
use domain::ids::compose_id;
use domain::records::{
    CarrierRecord, CarrierState, ConnectionRecord, ConnectionState, RefusedReload,
};
use domain::support::ReceiptKind;

use crate::transactions::work;
use crate::wakeups::Wakeup;
use crate::{Delivery, SANDBOX_CARRIER, run_detached};
use store::audit::{self, Actor, Change};
use store::error::{Refusal, Result};
use store::gate::Priority;
use store::query::Conn;
use store::raw_receipts::{self, RawReceiptRow, Selection};
use store::unmatched_receipts::{self, Selection as Waiting};
use store::{carriers, hold, queue};

/// To warn staff of useless receipts, this many of a carrier's latest receipts are checked. Only
/// receipts younger than [`JUDGED_MS`] count. At least [`JUDGED_MIN`] of them, and more than half,
/// must be useless.
const JUDGED_RECEIPTS: i64 = 50;
const JUDGED_MS: i64 = 10 * 60 * 1000;
const JUDGED_MIN: usize = 10;

impl Delivery<'_> {
    /// Returns every carrier in the settings, by name, with its waiting messages and the state of
    /// its connections.
    pub async fn carriers(&self) -> Result<Vec<CarrierRecord>> {
        let network = self.inner.router.network();
        let names = network.carriers.iter().map(|carrier| carrier.name.clone()).collect();
        self.records_of(names).await
    }

    /// Like [`Self::carriers`], for the carriers that running processes have connections to. This
    /// process's settings may lack these carriers.
    pub async fn served_carriers(&self) -> Result<Vec<CarrierRecord>> {
        let mut conn = self.store().read().await?;
        let connections = carriers::connections(&mut conn, self.now()).await?;
        drop(conn);
        let names = connections.into_iter().map(|connection| connection.carrier);
        self.records_of(names.filter(|name| name != SANDBOX_CARRIER).collect()).await
    }

    async fn records_of(&self, names: BTreeSet<String>) -> Result<Vec<CarrierRecord>> {
        let now = self.now();
        let mut conn = self.store().read().await?;
        let connections = carriers::connections(&mut conn, now).await?;
        let mut rows = carriers::all(&mut conn).await?;
        let held_since = hold::since(&mut conn).await?;
        drop(conn);
        let mut recent = self.recent_counts().await?;
        let mut refusals = self.recent_refusals().await?;
        let network = self.inner.router.network();
        let mut found = Vec::new();
        for name in names {
            let row = rows.remove(&name).unwrap_or_default();
            let (oldest_waiting_at, waiting) = self.waiting_for(&name).await?;
            let connections: Vec<_> = connections
                .iter()
                .filter(|connection| connection.carrier == name)
                .cloned()
                .collect();
            let state = state(row.drained_at, connections.iter());
            let (since, mut reason) = cause(state, row.drained_at, &connections);
            // Useless receipts don't change the state, but they may explain it.
            if matches!(state, CarrierState::Up | CarrierState::Degraded) {
                let more = self.useless_receipts(&name).await?;
                let joined = |a: String, b| format!("{}. {b}", a.trim_end_matches('.'));
                reason = [reason, more].into_iter().flatten().reduce(joined);
            }
            found.push(CarrierRecord {
                recent: recent.remove(&name).unwrap_or_default(),
                refusals: refusals.remove(&name).unwrap_or_default(),
                binds: network.carriers.iter().find(|info| info.name == name).map(|it| it.binds),
                name,
                state,
                since,
                reason,
                drained_at: row.drained_at,
                held_since,
                waiting,
                oldest_waiting_at,
                receipts_unmatched: row.receipts_unmatched,
                receipts_matched: row.receipts_matched,
                receipts_unknown_state: row.receipts_unknown_state,
                connections,
            });
        }
        Ok(found)
    }

    /// Returns the time since which the oldest message has waited for a carrier, and the number of
    /// waiting messages.
    async fn waiting_for(&self, carrier: &str) -> Result<(Option<Timestamp>, i64)> {
        let waiting = self.in_each_shard(|shard| async move {
            queue::waiting(&mut self.store().read_at(shard).await?, carrier, self.now()).await
        });
        let waiting = waiting.await?;
        let oldest = waiting.iter().filter_map(|state| state.oldest).min();
        Ok((oldest, waiting.iter().map(|state| state.waiting).sum()))
    }

    /// Stops submitting messages to a carrier until it is resumed. The carrier keeps the messages
    /// that it has. If there is another route, waiting messages take that route. Returns false if
    /// the carrier was drained already.
    ///
    /// If no other carrier accepts messages, the drain is refused unless `even_the_last` is true.
    ///
    /// # Errors
    /// `NoSuchCarrier`, `LastCarrier`.
    pub async fn drain_carrier(
        &self,
        actor: &Actor,
        name: &str,
        even_the_last: bool,
    ) -> Result<bool> {
        self.must_have_carrier(name)?;
        let (service, actor, name) = (self.0.clone(), *actor, name.to_owned());
        let (_, waiting) = self.waiting_for(&name).await?;
        let draining = self.in_transaction(work!(|tx, now| {
            carriers::ensure(tx, &name).await?;
            if !carriers::drain(tx, &name, now).await? {
                return Ok(false);
            }
            if !even_the_last && !service.delivery().has_usable_carrier(tx, now).await? {
                return Err(Refusal::LastCarrier { waiting }.into());
            }
            let change = Change::of("in use", "drained");
            audit::insert_change(tx, now, &actor, "carrier.drain", &name, change).await?;
            Ok(true)
        }));
        let changed = draining.await?;
        if changed {
            self.inner.wake(Wakeup::Drained);
        }
        Ok(changed)
    }

    /// Returns whether no carrier except this one accepts messages now.
    pub async fn is_last_carrier(&self, name: &str) -> Result<bool> {
        let mut conn = self.store().read().await?;
        Ok(!self.has_usable_carrier_but(&mut conn, name, self.now()).await?)
    }

    async fn has_usable_carrier(&self, conn: Conn<'_>, now: Timestamp) -> Result<bool> {
        self.has_usable_carrier_but(conn, "", now).await
    }

    /// Returns whether a route leads to a carrier that isn't drained and to which any process has a
    /// bound or degraded connection. Ignores the carrier `name`.
    async fn has_usable_carrier_but(
        &self,
        conn: Conn<'_>,
        name: &str,
        now: Timestamp,
    ) -> Result<bool> {
        let rows = carriers::all(&mut *conn).await?;
        let connections = carriers::connections(conn, now).await?;
        let network = self.inner.router.network();
        let mut routes = network.routes.as_slice().iter();
        Ok(routes.any(|route| {
            let drained_at = rows.get(&route.carrier).and_then(|row| row.drained_at);
            let of_it = connections.iter().filter(|c| c.carrier == route.carrier);
            route.carrier != name
                && matches!(state(drained_at, of_it), CarrierState::Up | CarrierState::Degraded)
        }))
    }

    /// Returns whether a carrier accepts messages now from any process.
    pub async fn has_carrier_for_messages(&self) -> Result<bool> {
        self.has_usable_carrier(&mut self.store().read().await?, self.now()).await
    }

    /// Returns the sender name for applications that have none.
    pub fn default_sender(&self) -> &str {
        &self.inner.router.default_sender
    }

    /// Ends a drain. Returns false if the carrier wasn't drained.
    ///
    /// # Errors
    /// `NoSuchCarrier`.
    pub async fn resume_carrier(&self, actor: &Actor, name: &str) -> Result<bool> {
        self.must_have_carrier(name)?;
        let (actor, name) = (*actor, name.to_owned());
        let resuming = self.in_transaction(work!(|tx, now| {
            let changed = carriers::resume(tx, &name).await?;
            if changed {
                let change = Change::of("drained", "in use");
                audit::insert_change(tx, now, &actor, "carrier.resume", &name, change).await?;
            }
            Ok(changed)
        }));
        let changed = resuming.await?;
        if changed {
            self.inner.wake(Wakeup::Drained);
        }
        Ok(changed)
    }

    /// Returns an error if the settings have no carrier with this name.
    pub(super) fn must_have_carrier(&self, name: &str) -> Result<()> {
        let network = self.inner.router.network();
        if !network.carriers.iter().any(|carrier| carrier.name == name) {
            return Err(Refusal::NoSuchCarrier.into());
        }
        Ok(())
    }

    /// Returns the connections of all other processes.
    pub async fn connections_elsewhere(&self) -> Result<Vec<ConnectionRecord>> {
        let mut conn = self.store().read().await?;
        let mut connections = carriers::connections(&mut conn, self.now()).await?;
        let node = self.inner.node.slot();
        connections.retain(|connection| connection.node != node);
        Ok(connections)
    }

    /// Returns the names of the drained carriers. Also forgets where claims for them begin to
    /// search the queue, because claims for a drained carrier find no rows although rows are due.
    pub async fn drained_carriers(&self) -> Result<Vec<String>> {
        let rows = carriers::all(&mut self.store().read().await?).await?;
        let drained = rows.into_iter().filter(|(_, row)| row.drained_at.is_some());
        let names: Vec<_> = drained.map(|(name, _)| name).collect();
        for name in &names {
            self.inner.scan_starts.forget(name);
        }
        Ok(names)
    }

    /// Checks whether most of a carrier's latest receipts are useless, because they match no
    /// message or have an unknown state. If so, returns a sentence for operators that says why.
    async fn useless_receipts(&self, carrier: &str) -> Result<Option<String>> {
        let now = self.now();
        let mut conn = self.store().read().await?;
        let latest = Selection::Receipts;
        let mut latest = raw_receipts::list(&mut conn, carrier, latest, JUDGED_RECEIPTS).await?;
        latest.retain(|receipt| now.ms_since(receipt.received_at()) <= JUDGED_MS);
        let Some(oldest) = latest.last() else { return Ok(None) };
        // A receipt is stored raw and, if it matches no message, as unmatched. Either may happen
        // first, so the search for unmatched receipts begins a second earlier.
        let since = Waiting::Newest(compose_id(oldest.received_at().unix_ms() - 1000, 0));
        let unmatched = unmatched_receipts::list(&mut conn, carrier, since, JUDGED_RECEIPTS);
        let unmatched = unmatched.await?.len();
        let is_unknown = |row: &&RawReceiptRow| row.kind == ReceiptKind::UnknownState;
        let (unknown, all) = (latest.iter().filter(is_unknown).count(), latest.len());
        let is_most = |count: usize| count >= JUDGED_MIN && count * 2 > all;
        let page = format!("/support/carriers/{carrier}/receipts");
        Ok(if is_most(unmatched) {
            Some(format!(
                "{unmatched} of the last {all} receipts match no message: {page} shows why"
            ))
        } else if is_most(unknown) {
            Some(format!(
                "{unknown} of the last {all} receipts have an unknown state: ask the carrier what \
                 it means, and set it in heliograph.toml ({page} lists them)"
            ))
        } else {
            None
        })
    }

    /// Stores for staff why this process refused to reload its settings. `None` removes the reason:
    /// the process has reloaded the settings, or has just started.
    pub async fn report_reload(&self, refused: Option<String>) -> Result<()> {
        let node = self.inner.node.slot();
        self.in_transaction(work!(|tx, now| {
            carriers::set_reload(tx, node, refused.as_deref(), now).await
        }))
        .await
    }

    /// Returns the processes that still use earlier settings, because the new ones have an error.
    pub async fn refused_reloads(&self) -> Result<Vec<RefusedReload>> {
        carriers::refused_reloads(&mut self.store().read().await?).await
    }

    /// Stores the state of this process's connections for operators.
    pub async fn report_connections(&self, connections: Vec<ConnectionRecord>) -> Result<()> {
        let service = self.0.clone();
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

fn state<'a>(
    drained_at: Option<Timestamp>,
    connections: impl Iterator<Item = &'a ConnectionRecord>,
) -> CarrierState {
    if drained_at.is_some() {
        return CarrierState::Drained;
    }
    let states: Vec<_> = connections.map(|connection| connection.state).collect();
    if states.contains(&ConnectionState::Bound) {
        CarrierState::Up
    } else if states.iter().any(|state| state.is_degraded()) {
        CarrierState::Degraded
    } else {
        CarrierState::Down
    }
}

/// Returns the time since which a carrier has been in its state. If the carrier is down or
/// degraded, also returns the reason.
fn cause(
    state: CarrierState,
    drained_at: Option<Timestamp>,
    connections: &[ConnectionRecord],
) -> (Option<Timestamp>, Option<String>) {
    let is_cause = |connection: &&ConnectionRecord| match state {
        CarrierState::Drained => false,
        CarrierState::Up => connection.state == ConnectionState::Bound,
        CarrierState::Degraded => connection.state.is_degraded(),
        CarrierState::Down => true,
    };
    let of_state: Vec<_> = connections.iter().filter(is_cause).collect();
    let since = match state {
        CarrierState::Drained => drained_at,
        // The outage began when the last connection was lost.
        CarrierState::Down => of_state.iter().map(|connection| connection.since).max(),
        CarrierState::Up | CarrierState::Degraded => {
            of_state.iter().map(|connection| connection.since).min()
        }
    };
    let reason = match state {
        CarrierState::Up | CarrierState::Drained => None,
        CarrierState::Down if of_state.is_empty() => {
            let step = "Start one with heliograph serve, or with --role worker";
            Some(format!("No running process has a connection to this carrier. {step}."))
        }
        CarrierState::Down | CarrierState::Degraded => {
            let mut with_error: Vec<_> =
                of_state.iter().filter(|connection| connection.last_error.is_some()).collect();
            // The newest error comes first. Of errors at the same time, the first connection's
            // comes first.
            with_error.sort_by_key(|connection| std::cmp::Reverse(connection.last_error_at));
            with_error.first().and_then(|connection| connection.last_error.clone())
        }
    };
    (since, reason)
}
