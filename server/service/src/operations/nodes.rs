//! Nodes, which are the processes that serve the same database. No node leads. Each node takes a
//! slot, a number that is part of the IDs it generates, and renews its row every few seconds.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use domain::Timestamp;
use domain::ids::Shard;
use domain::timestamp::DAY_MS;

use super::last_commit::{KEPT_MS, LastCommit};
use crate::Operations;
use crate::transactions::work;
use store::error::{OpenError, Result};
use store::gate::Priority;
use store::nodes::{self, NodeRow};
use store::shared::{self, NodeKey};
use store::{Chore, Store, Tx, data_folders};

/// The number of slots. An ID has 10 bits for the node, and uploads use half of the node numbers.
pub(crate) const SLOTS: i64 = 512;
/// How long a process may go without renewing its row, in milliseconds. After that it counts as
/// gone, or as unable to reach the database.
const LOST_AFTER_MS: i64 = 30_000;
/// How long a slot stays unused before another process gets it, in milliseconds. A process that
/// resumes after a long pause may still generate a few IDs with it.
const REST_MS: i64 = 60 * 60 * 1000;
/// The maximum duration of a query for the database server's time. Slower answers are ignored.
const ASKING_MAX: Duration = Duration::from_millis(500);
/// The difference between this machine's clock and the database server's above which a warning is
/// logged, in milliseconds. Clocks always differ a little.
const CLOCK_APART_MS: i64 = 5_000;
/// How long the spools of uploads that never became a batch are kept, in milliseconds.
const SPOOL_KEPT_MS: i64 = DAY_MS;

/// The role of this process among the nodes. It is chosen when the service is opened.
pub(crate) enum Node {
    /// The only process that serves its database, or a command.
    Alone,
    /// One of the processes that serve the database. There may be others at any time.
    Member(Member),
}

/// A process that may serve its database together with others.
pub(crate) struct Member {
    slot: AtomicI64,
    token: i64,
    name: String,
    /// The latest time at which another process is known to have ended, in Unix milliseconds.
    last_end: AtomicI64,
    last_commit: LastCommit,
}

impl Node {
    /// Takes a slot among the nodes.
    pub(crate) async fn join(
        store: &Store,
        last_commit: LastCommit,
        token: i64,
        now: Timestamp,
    ) -> std::result::Result<Self, OpenError> {
        let host = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
        let name = format!("{}:{}", host.trim(), std::process::id());
        let slot = take_slot(store, token, &name, now).await?.ok_or(OpenError::TooManyNodes)?;
        Ok(Self::Member(Member {
            slot: AtomicI64::new(slot),
            token,
            name,
            last_end: AtomicI64::new(0),
            last_commit,
        }))
    }

    /// Returns the slot, which is part of the IDs that this process generates.
    pub(crate) fn slot(&self) -> i64 {
        self.key().map_or(0, |key| key.slot)
    }

    /// Returns the slot and token by which other processes know this one. Returns `None` if there
    /// can be no others.
    pub(crate) fn key(&self) -> Option<NodeKey> {
        match self {
            Self::Alone => None,
            Self::Member(member) => {
                Some(NodeKey { slot: member.slot.load(Ordering::Relaxed), token: member.token })
            }
        }
    }

    /// Releases the slot.
    pub(crate) async fn leave(&self, store: &Store, now: Timestamp) {
        let Some(key) = self.key() else { return };
        let left = async { nodes::end(&mut store.read().await?, key.slot, key.token, now).await };
        if let Err(error) = left.await {
            tracing::warn!(detail = ?error, "can't release this process's slot among the nodes");
        }
    }
}

/// Whether a process serves the database, or ended just now without releasing its slot.
pub(crate) async fn is_served(tx: &mut Tx<'_>, now: Timestamp) -> Result<bool> {
    nodes::was_any_seen(tx, now.plus_ms(-LOST_AFTER_MS)).await
}

async fn take_slot(store: &Store, token: i64, name: &str, now: Timestamp) -> Result<Option<i64>> {
    let mut tx = store.begin().await?;
    let count = nodes::count(&mut tx).await?;
    let slot = if count < SLOTS {
        Some(count)
    } else {
        nodes::free(&mut tx, now.plus_ms(-REST_MS)).await?
    };
    if let Some(slot) = slot {
        let name = name.to_owned();
        nodes::take(&mut tx, &NodeRow { slot, token, name }, now).await?;
        tx.commit().await?;
        store.set_node(slot);
    }
    Ok(slot)
}

impl Operations<'_> {
    /// Whether other processes may serve the same database.
    pub fn is_shared(&self) -> bool {
        matches!(self.inner.node, Node::Member(_))
    }

    /// Renews the row of this process, and follows the database server's clock.
    pub async fn renew_node(&self) -> Result<()> {
        let Node::Member(node) = &self.inner.node else {
            return Ok(());
        };
        follow_server(self.store(), &self.inner.clock).await?;
        let now = self.now();
        let mut conn = self.store().read().await?;
        let slot = node.slot.load(Ordering::Relaxed);
        let is_renewed = nodes::renew(&mut conn, slot, node.token, now).await?;
        drop(conn);
        // A dump may have been restored while this process ran.
        let place = super::hold::begin_if_moved(self.store(), 0, now).await?;
        node.last_commit.renew(self.store(), place, 0, now).await?;
        if is_renewed {
            return Ok(());
        }
        tracing::warn!("other processes have counted this one as ended; taking a new slot");
        if let Some(slot) = take_slot(self.store(), node.token, &node.name, now).await? {
            node.slot.store(slot, Ordering::Relaxed);
        } else {
            tracing::error!("no slot is free: there were too many processes within the last hour");
        }
        Ok(())
    }

    /// Returns the number of nodes that serve the same database.
    pub(crate) async fn running_nodes(&self) -> Result<usize> {
        let since = self.now().plus_ms(-LOST_AFTER_MS);
        nodes::count_seen(&mut self.store().read().await?, since).await
    }

    /// Returns the age of the oldest open transaction of the database, in milliseconds. Returns
    /// `None` with SQLite.
    pub async fn oldest_transaction_ms(&self) -> Result<Option<i64>> {
        self.store().dialect().oldest_ms(&mut self.store().read().await?).await
    }

    /// Whether other processes have ended since the last call. A process that wasn't seen for half
    /// a minute counts as ended. The messages that it claimed are released when their lease ends.
    pub async fn nodes_ended(&self) -> Result<bool> {
        let Node::Member(node) = &self.inner.node else {
            return Ok(false);
        };
        self.give_up_nodes().await?;
        let last = nodes::last_end(&mut self.store().read().await?).await?;
        let known = node.last_end.swap(last, Ordering::Relaxed);
        Ok(last > known)
    }

    async fn give_up_nodes(&self) -> Result<()> {
        self.do_chore_at(
            Shard::FIRST,
            Chore::WatchNodes,
            Priority::Results,
            work!(|tx, now| {
                let lost = nodes::lost(tx, now.plus_ms(-LOST_AFTER_MS)).await?;
                for node in &lost {
                    tracing::warn!(
                        node = node.name,
                        "a process wasn't seen for too long and counts as ended"
                    );
                    nodes::end(tx, node.slot, node.token, now).await?;
                }
                nodes::forget_connections(tx).await?;
                shared::forget_uploads(tx).await?;
                data_folders::forget(tx, now.plus_ms(-KEPT_MS)).await?;
                Ok(false)
            }),
        )
        .await?;
        self.do_chore(
            Chore::WatchNodes,
            Priority::Results,
            work!(|tx, now| {
                shared::forget_spools(tx, now.plus_ms(-SPOOL_KEPT_MS)).await?;
                Ok(false)
            }),
        )
        .await
    }
}

/// Follows the clock of the database server, if there is one.
pub(crate) async fn follow_server(store: &Store, clock: &crate::Clock) -> Result<()> {
    if let Some(ahead_ms) = follow(store, clock).await?
        && ahead_ms.abs() > CLOCK_APART_MS
    {
        tracing::warn!(
            ahead_ms,
            "this machine's clock differs from the database server's, which is used: is one of \
             them wrong?"
        );
    }
    Ok(())
}

/// Like [`follow_server`]. Returns how far this machine's clock is ahead of the database server's,
/// in milliseconds. `None` if there is no database server or its answer took too long.
pub(crate) async fn follow(store: &Store, clock: &crate::Clock) -> Result<Option<i64>> {
    let mut conn = store.read().await?;
    let asked = Instant::now();
    let Some(ms) = store.dialect().server_ms(&mut conn).await? else {
        return Ok(None);
    };
    let took = asked.elapsed();
    // The time in a delayed answer may be outdated.
    if took > ASKING_MAX {
        return Ok(None);
    }
    let half_ms = i64::try_from(took.as_millis() / 2).unwrap_or(0);
    Ok(Some(clock.follow(ms + half_ms)))
}
