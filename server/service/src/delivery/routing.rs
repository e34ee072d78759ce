//! Routing: which carrier a message waits for. The carrier is chosen when the message is queued,
//! and again if that carrier can't accept the message.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use domain::ids::Shard;
use domain::routing::{Choice, Route, Routes, RoutingFacts};
use domain::{
    DeliveryError, Kind, MessageIdForm, MessageStatus, Money, Number, Reference, Transid,
};

use crate::money::releases::settle;
use crate::wakeups::Wakeup;
use crate::{Delivery, SANDBOX_CARRIER, run_detached_with_attempts};
use store::error::Result;
use store::gate::Priority;
use store::messages::{self, Ending};
use store::queue::{self, Moved, Routed};

/// Stands for the carrier of queued messages that match no route.
pub(crate) const NO_CARRIER: &str = "";
/// The number of waiting rows per transaction.
const CHUNK: i64 = 500;

/// The carriers and the routes to them.
#[derive(Clone, Debug)]
pub struct Network {
    pub carriers: Vec<CarrierInfo>,
    pub routes: Routes,
    /// The country code that is put before local numbers for carriers.
    pub country_code: String,
    /// The sender name for applications that have none.
    pub default_sender: String,
}

/// The settings of a carrier that decide how its messages are recorded.
#[derive(Clone, Debug)]
pub struct CarrierInfo {
    pub name: String,
    /// Whether the carrier keeps nothing and delivers nothing. A submit may be repeated, and
    /// nothing is recorded about it.
    pub sandbox: bool,
    /// Whether the carrier receives whole messages and splits them itself.
    pub whole: bool,
    /// How the carrier writes message IDs. `None` if it writes them the same everywhere.
    pub message_id: Option<MessageIdForm>,
}

impl Network {
    /// A network with the sandbox as the only carrier. No message is delivered.
    pub fn sandbox(country_code: String, default_sender: String) -> Self {
        Self {
            carriers: vec![CarrierInfo {
                name: SANDBOX_CARRIER.to_owned(),
                sandbox: true,
                whole: true,
                message_id: None,
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

    /// Whether nothing is recorded about submits to this carrier.
    pub(crate) fn is_sandbox(&self, carrier: &str) -> bool {
        carrier == SANDBOX_CARRIER || self.carriers.iter().any(|c| c.name == carrier && c.sandbox)
    }

    /// Returns how a carrier writes message IDs.
    pub(crate) fn message_id(&self, carrier: &str) -> Option<MessageIdForm> {
        self.carriers.iter().find(|c| c.name == carrier)?.message_id
    }

    pub(crate) fn takes_whole(&self, carrier: &str) -> bool {
        self.carriers.iter().any(|c| c.name == carrier && c.whole)
    }

    fn has(&self, carrier: &str) -> bool {
        self.carriers.iter().any(|known| known.name == carrier)
    }

    /// Whether a route leads a message to this carrier.
    fn leads_to(&self, carrier: &str, message: &Message<'_>) -> bool {
        let number = self.address(message);
        let facts = self.facts(message, &number);
        let mut routes = self.routes.as_slice().iter();
        routes.any(|route| route.carrier == carrier && route.matches(&facts))
    }

    /// Returns a carrier's price for a segment of a message. `None` if the settings have none.
    pub(crate) fn cost(&self, carrier: &str, message: &Message<'_>) -> Option<Money> {
        let number = self.address(message);
        self.routes.cost(carrier, &self.facts(message, &number))
    }

    /// Returns a message's number as carriers get it.
    fn address(&self, message: &Message<'_>) -> String {
        let number = Number::from_stored(message.number.to_owned(), message.kind);
        number.for_carrier(&self.country_code)
    }

    fn facts<'a>(&'a self, message: &Message<'a>, number: &'a str) -> RoutingFacts<'a> {
        RoutingFacts {
            kind: message.kind,
            number,
            application: Some(message.application),
            sender: message.sender.unwrap_or(&self.default_sender),
        }
    }

    /// Returns the carrier of every message if there is only one route, without conditions.
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

/// Chooses carriers, and tracks which of them can accept messages now.
pub(crate) struct Router {
    /// Fixed while the process runs, unlike the carriers and routes.
    pub(crate) country_code: String,
    pub(crate) default_sender: String,
    network: RwLock<Arc<Network>>,
    /// True if the network has changed since the messages that wait were last checked.
    changed: AtomicBool,
    /// The carriers that can't accept messages now. The value is true if the next message goes
    /// there all the same, as a probe.
    unusable: RwLock<HashMap<String, AtomicBool>>,
}

/// The fields of a message that routes depend on.
pub(crate) struct Message<'a> {
    pub(crate) number: &'a str,
    pub(crate) kind: Kind,
    pub(crate) sender: Option<&'a str>,
    pub(crate) application: Reference,
}

impl Router {
    pub(crate) fn new(network: Network) -> Self {
        Self {
            country_code: network.country_code.clone(),
            default_sender: network.default_sender.clone(),
            network: RwLock::new(Arc::new(network)),
            // The settings may have changed since the last process.
            changed: AtomicBool::new(true),
            unusable: RwLock::default(),
        }
    }

    /// Returns the carriers and routes in force.
    pub(crate) fn network(&self) -> Arc<Network> {
        Arc::clone(&self.network.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the carrier that a message waits for, or [`NO_CARRIER`] if it matches no route.
    /// While no carrier can accept it, the message waits for its first choice.
    pub(crate) fn carrier(&self, message: &Message<'_>, random: u64, excluded: &[&str]) -> String {
        // A shortcut for every send: most installations have only one route, for all messages.
        let network = self.network();
        if let Some(only) = network.only().filter(|_| excluded.is_empty()) {
            return only.to_owned();
        }
        let usable = self.choose(message, random, excluded, false);
        usable
            .or_else(|| self.choose(message, random, excluded, true))
            .unwrap_or_else(|| NO_CARRIER.to_owned())
    }

    /// Returns the first carrier that can accept a message now or is waiting for a probe. With
    /// `all`, returns the first carrier whatever its state.
    fn choose(
        &self,
        message: &Message<'_>,
        random: u64,
        excluded: &[&str],
        all: bool,
    ) -> Option<String> {
        let network = self.network();
        let number = network.address(message);
        let facts = network.facts(message, &number);
        let unusable = self.unusable.read().unwrap_or_else(PoisonError::into_inner);
        let first = |usable: &dyn Fn(&str) -> bool| match network
            .routes
            .choose(&facts, random, usable, excluded)
        {
            Choice::Carrier(name) => Some(name.to_owned()),
            Choice::Wait | Choice::Exhausted | Choice::NoRoute => None,
        };
        if all {
            return first(&|_| true);
        }
        let probe = |name: &str| unusable.get(name);
        first(&|name| probe(name).is_none_or(|wanted| wanted.load(Ordering::Relaxed)))
            // Only one message is the probe.
            .filter(|name| probe(name).is_none_or(|wanted| wanted.swap(false, Ordering::Relaxed)))
            .or_else(|| first(&|name| probe(name).is_none()))
    }

    pub(crate) fn is_usable(&self, carrier: &str) -> bool {
        let unusable = self.unusable.read().unwrap_or_else(PoisonError::into_inner);
        !unusable.contains_key(carrier)
    }

    /// Whether a route leads to another carrier that can accept messages.
    fn has_other(&self, carrier: &str) -> bool {
        let network = self.network();
        let routes = network.routes.as_slice().iter();
        let mut others = routes.filter(|route| route.carrier != carrier);
        others.any(|route| self.is_usable(&route.carrier))
    }

    /// Sets whether a carrier can accept messages. Returns true if this is a change.
    fn set_usable(&self, carrier: &str, usable: bool) -> bool {
        let mut unusable = self.unusable.write().unwrap_or_else(PoisonError::into_inner);
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

impl Delivery<'_> {
    /// Sets whether a carrier can accept messages now. While it can't, new messages take another
    /// route. Messages that already wait for it do so at the next [`Delivery::reroute`].
    pub fn set_usable(&self, carrier: &str, usable: bool) {
        if self.inner.router.set_usable(carrier, usable) {
            self.inner.routes_changed.notify_one();
        }
    }

    /// Lets the next message for this carrier go there as a probe although the carrier is unusable,
    /// or cancels that. All other messages take another route meanwhile.
    pub fn let_probe(&self, carrier: &str, wanted: bool) {
        self.inner.router.let_probe(carrier, wanted);
    }

    /// Returns the carriers that can't accept messages now.
    pub fn unusable_carriers(&self) -> Vec<String> {
        self.inner.router.unusable()
    }

    /// Returns the carriers that messages wait for although they aren't in the settings any more.
    /// An empty name stands for messages without a carrier.
    pub async fn unknown_carriers(&self) -> Result<Vec<String>> {
        let waited_for = self.in_each_shard(|shard| async move {
            queue::carriers(&mut self.store().read_at(shard).await?).await
        });
        let waited_for: BTreeSet<String> = waited_for.await?.into_iter().flatten().collect();
        let mut waited_for: Vec<String> = waited_for.into_iter().collect();
        let network = self.inner.router.network();
        waited_for.retain(|name| name != SANDBOX_CARRIER && !network.has(name));
        Ok(waited_for)
    }

    /// Replaces the carriers and routes. Messages that wait for a carrier to which no route leads
    /// them any more take another route at the next [`Delivery::reroute`].
    pub fn set_network(&self, network: Network) {
        let router = &self.inner.router;
        *router.network.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(network);
        router.changed.store(true, Ordering::Relaxed);
        self.inner.routes_changed.notify_one();
    }

    /// Returns the carriers whose waiting messages must be checked because carriers or routes have
    /// changed since the last call. An empty name stands for messages without a carrier.
    pub async fn carriers_to_check(&self) -> Result<Vec<String>> {
        let router = &self.inner.router;
        if !router.changed.swap(false, Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        let unknown = self.unknown_carriers().await;
        let mut carriers =
            unknown.inspect_err(|_| router.changed.store(true, Ordering::Relaxed))?;
        let network = router.network();
        let names = network.carriers.iter().map(|carrier| carrier.name.clone());
        // The only route, without conditions, leads every message to its carrier.
        carriers.extend(names.filter(|name| network.only() != Some(name)));
        Ok(carriers)
    }

    /// Finds another carrier for the messages that wait for this one. A message that matches no
    /// route is rejected, and its charge is released. A message stays if the carrier has some of
    /// its segments.
    pub async fn reroute(&self, carrier: &str) -> Result<()> {
        // If no other carrier can accept the backlog, don't read it.
        let router = &self.inner.router;
        let waits = carrier != NO_CARRIER && router.network().has(carrier);
        if waits && !router.is_usable(carrier) && !router.has_other(carrier) {
            return Ok(());
        }
        let rerouting = self.in_each_shard(|shard| self.reroute_at(shard, carrier));
        rerouting.await.map(drop)
    }

    async fn reroute_at(&self, shard: Shard, carrier: &str) -> Result<()> {
        let waits = queue::has_unclaimed(&mut self.store().read_at(shard).await?, carrier).await?;
        let mut after = waits.then_some(Transid(0));
        while let Some(last) = after {
            let carrier = carrier.to_owned();
            after = run_detached_with_attempts(self, move |service| {
                let carrier = carrier.clone();
                async move { service.delivery().reroute_some(shard, &carrier, last).await }
            })
            .await?;
        }
        Ok(())
    }

    /// Reroutes a chunk of messages. Returns the last ID that was read, or `None` at the end.
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
            // All of these rows leave the queue or move, so each query finds the next rows.
            queue::unrouted(&mut tx, carrier, CHUNK).await?
        } else {
            queue::unclaimed(&mut tx, carrier, after, CHUNK).await?
        };
        let Some(last) = waiting.last().copied() else {
            return Ok(None);
        };
        let (mut moved, mut rejected) = (Vec::new(), Vec::new());
        let router = &self.inner.router;
        let network = router.network();
        let stays = router.is_usable(carrier) && carrier != NO_CARRIER;
        for row in queue::routed(&mut tx, &waiting).await? {
            if stays && network.leads_to(carrier, &facts(&row)) {
                continue;
            }
            let to = self.way_for(&row);
            if to == NO_CARRIER {
                rejected.push(unroutable(&row));
            } else if to != carrier {
                moved.push(Moved { message_id: row.message_id, carrier: to });
            }
        }
        if moved.is_empty() && rejected.is_empty() {
            // The query for `NO_CARRIER` has no cursor and would find the same rows again.
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

    /// Returns the carrier for a waiting message among those that haven't refused it.
    fn way_for(&self, row: &Routed) -> String {
        let excluded: Vec<&str> = row.refused_by.split_ascii_whitespace().collect();
        let random = self.entropy().number();
        let router = &self.inner.router;
        router.carrier(&facts(row), random, &excluded)
    }

    /// Returns another carrier for a message that the carrier `not` just didn't accept. A message
    /// that was refused may wait for the other carrier. Otherwise the other carrier must be able to
    /// accept it now.
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
    // The error is always `NoRoute`: if every carrier refuses a message, the last refusal makes it
    // final.
    Ending {
        id: row.message_id,
        status: MessageStatus::Rejected,
        error: Some(DeliveryError::NoRoute.as_str().to_owned()),
        release: true,
        taken: false,
    }
}
