//! Routing: which carrier a message waits for. The carrier is chosen when the message is queued,
//! and again when that carrier can't take the message.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use domain::ids::Shard;
use domain::routing::{Choice, Route, Routes, RoutingFacts};
use domain::{DeliveryError, Kind, MessageStatus, Money, Number, Reference, Transid};

use crate::error::Result;
use crate::money::releases::settle;
use crate::store::gate::Priority;
use crate::store::messages::{self, Ending};
use crate::store::queue::{self, Moved, Routed};
use crate::wakeups::Wakeup;
use crate::{SANDBOX_CARRIER, Service, run_detached_with_attempts};

/// The name in place of a carrier for queued messages that no route is for.
pub(crate) const NO_CARRIER: &str = "";
/// How many waiting rows one transaction looks at.
const CHUNK: i64 = 500;

/// The carriers and the routes to them.
#[derive(Clone, Debug)]
pub struct Network {
    pub carriers: Vec<CarrierInfo>,
    pub routes: Routes,
    /// The country code that is put before a local number when it goes to a carrier.
    pub country_code: String,
    /// The sender name that carriers are given for applications without one.
    pub default_sender: String,
}

/// What must be known of a carrier to record its messages rightly.
#[derive(Clone, Debug)]
pub struct CarrierInfo {
    pub name: String,
    /// Whether the carrier keeps nothing and sends to nobody: a submit may be repeated, and nothing
    /// is recorded of it.
    pub sandbox: bool,
    /// Whether the carrier is handed whole messages, and cuts them itself.
    pub whole: bool,
}

impl Network {
    /// The sandbox as the only carrier: nothing reaches anybody.
    pub fn sandbox(country_code: String, default_sender: String) -> Self {
        Self {
            carriers: vec![CarrierInfo {
                name: SANDBOX_CARRIER.to_owned(),
                sandbox: true,
                whole: true,
            }],
            routes: Routes::new(vec![Route {
                carrier: SANDBOX_CARRIER.to_owned(),
                priority: 0,
                weight: std::num::NonZeroU32::MIN,
                kind: None,
                prefix: None,
                application: None,
                sender: None,
                cost: None,
            }]),
            country_code,
            default_sender,
        }
    }

    /// Whether nothing is recorded of what this carrier is handed.
    pub(crate) fn is_sandbox(&self, carrier: &str) -> bool {
        carrier == SANDBOX_CARRIER || self.carriers.iter().any(|c| c.name == carrier && c.sandbox)
    }

    pub(crate) fn takes_whole(&self, carrier: &str) -> bool {
        self.carriers.iter().any(|c| c.name == carrier && c.whole)
    }

    /// What a carrier charges for a segment of a message; `None` where the settings don't say.
    pub(crate) fn cost(&self, carrier: &str, message: &Message<'_>) -> Option<Money> {
        let number = Number::from_stored(message.number.to_owned(), message.kind);
        let facts = RoutingFacts {
            kind: message.kind,
            number: &number.for_carrier(&self.country_code),
            application: message.application,
            sender: message.sender.unwrap_or(&self.default_sender),
        };
        self.routes.cost(carrier, &facts)
    }

    /// The carrier of every message, where the only route is one for all messages.
    pub(crate) fn only(&self) -> Option<&str> {
        match self.routes.as_slice() {
            [route]
                if route.kind.is_none()
                    && route.prefix.is_none()
                    && route.application.is_none()
                    && route.sender.is_none() =>
            {
                Some(&route.carrier)
            }
            _ => None,
        }
    }
}

/// Chooses carriers, knowing which of them can take messages now.
pub(crate) struct Router {
    pub(crate) network: Network,
    /// Carriers that can't take messages now, and for each whether one message goes there all the
    /// same, as a probe.
    unusable: RwLock<HashMap<String, AtomicBool>>,
}

/// What routes look at in a message.
pub(crate) struct Message<'a> {
    pub(crate) number: &'a str,
    pub(crate) kind: Kind,
    pub(crate) sender: Option<&'a str>,
    pub(crate) application: Reference,
}

impl Router {
    pub(crate) fn new(network: Network) -> Self {
        Self {
            network,
            unusable: RwLock::default(),
        }
    }

    /// The carrier that a message waits for; [`NO_CARRIER`] when no route is for the message. While
    /// no carrier can take it, the message waits for the one that would come first.
    pub(crate) fn carrier(&self, message: &Message<'_>, random: u64, excluded: &[&str]) -> String {
        // Every send comes by here, and mostly there is only one route, for all messages.
        if let Some(only) = self.network.only().filter(|_| excluded.is_empty()) {
            return only.to_owned();
        }
        let usable = self.choose(message, random, excluded, false);
        usable
            .or_else(|| self.choose(message, random, excluded, true))
            .unwrap_or_else(|| NO_CARRIER.to_owned())
    }

    /// The first carrier that can take a message now, or that is to be probed with it; or, with
    /// `all`, the first carrier of all.
    fn choose(
        &self,
        message: &Message<'_>,
        random: u64,
        excluded: &[&str],
        all: bool,
    ) -> Option<String> {
        let number = Number::from_stored(message.number.to_owned(), message.kind);
        let number = number.for_carrier(&self.network.country_code);
        let facts = RoutingFacts {
            kind: message.kind,
            number: &number,
            application: message.application,
            sender: message.sender.unwrap_or(&self.network.default_sender),
        };
        let unusable = self.unusable.read().unwrap_or_else(PoisonError::into_inner);
        let first = |usable: &dyn Fn(&str) -> bool| {
            let routes = &self.network.routes;
            match routes.choose(&facts, random, usable, excluded) {
                Choice::Carrier(name) => Some(name.to_owned()),
                Choice::Wait | Choice::Exhausted | Choice::NoRoute => None,
            }
        };
        if all {
            return first(&|_| true);
        }
        let probe = |name: &str| unusable.get(name);
        first(&|name| probe(name).is_none_or(|wanted| wanted.load(Ordering::Relaxed)))
            // A single message is the probe.
            .filter(|name| probe(name).is_none_or(|wanted| wanted.swap(false, Ordering::Relaxed)))
            .or_else(|| first(&|name| probe(name).is_none()))
    }

    pub(crate) fn is_usable(&self, carrier: &str) -> bool {
        let unusable = self.unusable.read().unwrap_or_else(PoisonError::into_inner);
        !unusable.contains_key(carrier)
    }

    /// Whether another carrier that a route leads to can take messages.
    fn has_other(&self, carrier: &str) -> bool {
        let routes = self.network.routes.as_slice();
        let mut others = routes.iter().filter(|route| route.carrier != carrier);
        others.any(|route| self.is_usable(&route.carrier))
    }

    /// Notes whether a carrier can take messages; true when that is news.
    fn set_usable(&self, carrier: &str, usable: bool) -> bool {
        let mut unusable = self
            .unusable
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if usable {
            unusable.remove(carrier).is_some()
        } else if unusable.contains_key(carrier) {
            false
        } else {
            unusable.insert(carrier.to_owned(), AtomicBool::new(false));
            true
        }
    }

    fn let_probe(&self, carrier: &str, wanted: bool) {
        let unusable = self.unusable.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(probe) = unusable.get(carrier) {
            probe.store(wanted, Ordering::Relaxed);
        }
    }

    pub(crate) fn unusable(&self) -> Vec<String> {
        let unusable = self.unusable.read().unwrap_or_else(PoisonError::into_inner);
        unusable.keys().cloned().collect()
    }
}

impl Service {
    /// Notes whether a carrier can take messages now. While it can't, new messages take another
    /// route, and so do the messages that wait for it, as soon as [`Service::reroute`] has looked
    /// at them.
    pub fn set_usable(&self, carrier: &str, usable: bool) {
        if self.inner.router.set_usable(carrier, usable) {
            self.inner.routes_changed.notify_one();
        }
    }

    /// Lets the next message that would go to this carrier go there though the carrier can't be
    /// relied on, as a probe; or takes that back. Only one message is a probe: the others take
    /// another route meanwhile.
    pub fn let_probe(&self, carrier: &str, wanted: bool) {
        self.inner.router.let_probe(carrier, wanted);
    }

    /// Carriers that can't take messages now.
    pub fn unusable_carriers(&self) -> Vec<String> {
        self.inner.router.unusable()
    }

    /// The carriers that messages wait for though they aren't set up any more; an empty name stands
    /// for messages that wait for no carrier.
    pub async fn unknown_carriers(&self) -> Result<Vec<String>> {
        let waited_for = self.in_each_shard(|shard| async move {
            let mut conn = self.store().read_at(shard).await?;
            queue::carriers(&mut conn).await
        });
        let waited_for: BTreeSet<String> = waited_for.await?.into_iter().flatten().collect();
        let mut waited_for: Vec<String> = waited_for.into_iter().collect();
        let network = &self.inner.router.network;
        waited_for.retain(|name| {
            name != SANDBOX_CARRIER && !network.carriers.iter().any(|known| known.name == *name)
        });
        Ok(waited_for)
    }

    /// Looks for another carrier for the messages that wait for one. A message that no route is for
    /// is rejected and its price given back; a message of which the carrier has a part stays.
    pub async fn reroute(&self, carrier: &str) -> Result<()> {
        // A backlog isn't read when no other carrier can take it.
        if carrier != NO_CARRIER && !self.inner.router.has_other(carrier) {
            return Ok(());
        }
        let rerouting = self.in_each_shard(|shard| self.reroute_at(shard, carrier));
        rerouting.await.map(drop)
    }

    async fn reroute_at(&self, shard: Shard, carrier: &str) -> Result<()> {
        let waits = {
            let mut conn = self.store().read_at(shard).await?;
            queue::has_unclaimed(&mut conn, carrier).await?
        };
        let mut after = waits.then_some(Transid(0));
        while let Some(last) = after {
            let carrier = carrier.to_owned();
            after = run_detached_with_attempts(self, move |service| {
                let carrier = carrier.clone();
                async move { service.reroute_some(shard, &carrier, last).await }
            })
            .await?;
        }
        Ok(())
    }

    /// Reroutes a chunk of messages; returns the last id that was looked at, or `None` at the end.
    async fn reroute_some(
        &self,
        shard: Shard,
        carrier: &str,
        after: Transid,
    ) -> Result<Option<Transid>> {
        let now = self.now();
        let mut tx = self.store().begin_as(Priority::Bulk).await?;
        tx.at(shard);
        let waiting = if carrier == NO_CARRIER {
            // All of these rows leave, so that each look finds the next rows.
            queue::unrouted(&mut tx, carrier, CHUNK).await?
        } else {
            queue::unclaimed(&mut tx, carrier, after, CHUNK).await?
        };
        let Some(last) = waiting.last().copied() else {
            return Ok(None);
        };
        let (mut moved, mut rejected) = (Vec::new(), Vec::new());
        for row in queue::routed(&mut tx, &waiting).await? {
            let to = self.way_for(&row);
            if to == NO_CARRIER {
                rejected.push(unroutable(&row));
            } else if to != carrier {
                moved.push(Moved {
                    message_id: row.message_id,
                    carrier: to,
                });
            }
        }
        if moved.is_empty() && rejected.is_empty() {
            // Without a cursor the next look would find the same rows again.
            return Ok((carrier != NO_CARRIER).then_some(last));
        }
        queue::move_to(&mut tx, &moved, now).await?;
        let gone: Vec<Transid> = rejected.iter().map(|ending| ending.id).collect();
        queue::drop_all(&mut tx, &gone).await?;
        let ended = messages::finish(&mut tx, &rejected, now).await?;
        settle(&mut tx, &ended, now).await?;
        tx.commit().await?;
        self.inner.wake(Wakeup::Queued);
        Ok(Some(last))
    }

    /// The carrier for a waiting message, of those that haven't refused it.
    fn way_for(&self, row: &Routed) -> String {
        let excluded: Vec<&str> = row.refused_by.split_ascii_whitespace().collect();
        let random = self.entropy().number();
        let router = &self.inner.router;
        router.carrier(&facts(row), random, &excluded)
    }

    /// Another carrier for a message that the carrier `not` just didn't take. Where the message was
    /// refused, it may wait for the other carrier; otherwise that carrier must be able to take it
    /// now.
    pub(crate) fn other_way(&self, row: &Routed, not: &str, refused: bool) -> Option<String> {
        let refused_by = row.refused_by.split_ascii_whitespace();
        let excluded: Vec<&str> = refused_by.chain([not]).collect();
        let random = self.entropy().number();
        let (router, facts) = (&self.inner.router, facts(row));
        let usable = router.choose(&facts, random, &excluded, false);
        usable.or_else(|| {
            let any = || router.choose(&facts, random, &excluded, true);
            refused.then(any).flatten()
        })
    }
}

fn facts(row: &Routed) -> Message<'_> {
    Message {
        number: &row.number,
        kind: row.kind,
        sender: row.sender.as_deref(),
        application: row.reference,
    }
}

fn unroutable(row: &Routed) -> Ending {
    // What a carrier refused is stored at the last refusal; here no carrier was asked.
    Ending {
        id: row.message_id,
        status: MessageStatus::Rejected,
        error: Some(DeliveryError::NoRoute.as_str().to_owned()),
        release: true,
        taken: false,
    }
}
