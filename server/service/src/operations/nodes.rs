//! Nodes: this process among those that serve the same database. No node leads: each takes a slot,
//! a number that stands in the ids that it makes, and renews its row every few seconds.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use domain::Timestamp;
use domain::ids::Shard;
use domain::timestamp::DAY_MS;

use crate::Service;
use crate::error::{OpenError, Result};
use crate::store::gate::Priority;
use crate::store::nodes::{self, NodeRow};
use crate::store::shared::{self, NodeKey};
use crate::store::{Chore, Store, WriteTx};

/// How many slots there are: an id has 10 bits for the node, and uploads have node numbers of their
/// own.
pub(crate) const SLOTS: i64 = 512;
/// A process that wasn't seen for this long is gone, or can't reach the database.
const LOST_AFTER_MS: i64 = 30_000;
/// How long a slot rests before another process gets it: a process that wakes from a long pause may
/// still make an id or two with it.
const REST_MS: i64 = 60 * 60 * 1000;
/// How long asking for the server's time may take.
const ASKING_MAX: Duration = Duration::from_millis(500);
/// Clocks differ a little; a greater difference is worth a warning.
const CLOCK_APART_MS: i64 = 5_000;
/// How long the spools of uploads that never became a batch are kept.
const SPOOL_KEPT_MS: i64 = DAY_MS;

/// This process among the nodes, as chosen when the service is opened.
pub(crate) enum Node {
    /// The only process that serves its database, or a command beside the processes that do.
    Alone,
    /// One of the processes that serve the database, however many there are now.
    Member(Member),
}

/// A process that serves beside others.
pub(crate) struct Member {
    slot: AtomicI64,
    token: i64,
    name: String,
    /// When a process was last seen to end, in unix milliseconds.
    last_end: AtomicI64,
}

impl Node {
    /// Takes a slot among the nodes.
    pub(crate) async fn join(
        store: &Store,
        token: i64,
        now: Timestamp,
    ) -> std::result::Result<Self, OpenError> {
        let host = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
        let name = format!("{}:{}", host.trim(), std::process::id());
        let slot = take_slot(store, token, &name, now)
            .await?
            .ok_or(OpenError::TooManyNodes)?;
        Ok(Self::Member(Member {
            slot: AtomicI64::new(slot),
            token,
            name,
            last_end: AtomicI64::new(0),
        }))
    }

    /// The slot, which stands in the ids that this process makes.
    pub(crate) fn slot(&self) -> i64 {
        self.key().map_or(0, |key| key.slot)
    }

    /// The slot and the token that the other processes know this one by; `None` where there are no
    /// others.
    pub(crate) fn key(&self) -> Option<NodeKey> {
        match self {
            Self::Alone => None,
            Self::Member(member) => Some(NodeKey {
                slot: member.slot.load(Ordering::Relaxed),
                token: member.token,
            }),
        }
    }

    /// Gives the slot back.
    pub(crate) async fn leave(&self, store: &Store, now: Timestamp) {
        let Some(key) = self.key() else { return };
        let left = async {
            let mut conn = store.read().await?;
            nodes::end(&mut conn, key.slot, key.token, now).await
        };
        if let Err(error) = left.await {
            tracing::warn!(detail = ?error, "the others aren't told that this process ends");
        }
    }
}

/// Whether a process serves the database, or ended just now without giving its slot back.
pub(crate) async fn is_served(tx: &mut WriteTx<'_>, now: Timestamp) -> Result<bool> {
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

impl Service {
    /// Whether other processes may serve the same database beside this one.
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
        if nodes::renew(&mut conn, slot, node.token, now).await? {
            return Ok(());
        }
        drop(conn);
        tracing::warn!("this process was given up by the others and takes a new number");
        if let Some(slot) = take_slot(self.store(), node.token, &node.name, now).await? {
            node.slot.store(slot, Ordering::Relaxed);
        } else {
            tracing::error!(
                "no number is free: there were too many processes within the last hour"
            );
        }
        Ok(())
    }

    /// How long the oldest transaction of the database has been open, in milliseconds; `None` with
    /// SQLite.
    pub async fn oldest_transaction_ms(&self) -> Result<Option<i64>> {
        let mut conn = self.store().read().await?;
        self.store().dialect().oldest_ms(&mut conn).await
    }

    /// Whether other processes ended since the last call. Processes that weren't seen for half a
    /// minute are given up; the messages that they claimed are freed when the lease ends.
    pub async fn nodes_ended(&self) -> Result<bool> {
        let Node::Member(node) = &self.inner.node else {
            return Ok(false);
        };
        self.give_up_nodes().await?;
        let mut conn = self.store().read().await?;
        let last = nodes::last_end(&mut conn).await?;
        let known = node.last_end.swap(last, Ordering::Relaxed);
        Ok(last > known)
    }

    async fn give_up_nodes(&self) -> Result<()> {
        self.do_chore_at(
            Shard::FIRST,
            Chore::WatchNodes,
            Priority::Results,
            |tx, now| {
                Box::pin(async move {
                    let lost = nodes::lost(tx, now.plus_ms(-LOST_AFTER_MS)).await?;
                    for node in &lost {
                        tracing::warn!(node = node.name, "a process wasn't seen for too long");
                        nodes::end(tx, node.slot, node.token, now).await?;
                    }
                    nodes::forget_connections(tx).await?;
                    shared::forget_uploads(tx).await?;
                    Ok(false)
                })
            },
        )
        .await?;
        self.do_chore(Chore::WatchNodes, Priority::Results, |tx, now| {
            Box::pin(async move {
                shared::forget_spools(tx, now.plus_ms(-SPOOL_KEPT_MS)).await?;
                Ok(false)
            })
        })
        .await
    }
}

/// Follows the clock of the database server, where there is one.
pub(crate) async fn follow_server(store: &Store, clock: &crate::Clock) -> Result<()> {
    let mut conn = store.read().await?;
    let asked = Instant::now();
    if let Some(ms) = store.dialect().server_ms(&mut conn).await? {
        let took = asked.elapsed();
        // An answer that was held up says what time it was when it was made.
        if took > ASKING_MAX {
            return Ok(());
        }
        let half_ms = i64::try_from(took.as_millis() / 2).unwrap_or(0);
        let ahead_ms = clock.follow(ms + half_ms);
        if ahead_ms.abs() > CLOCK_APART_MS {
            tracing::warn!(
                ahead_ms,
                "this machine's clock isn't the database server's, which is gone by: is one of \
                 them wrong?"
            );
        }
    }
    Ok(())
}
