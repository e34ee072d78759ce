//! Routing: which carrier a message waits for. The carrier is chosen when the message is queued,
//! and again if that carrier can't accept the message.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use domain::ids::Shard;
use domain::routing::{Choice, Qualities, Route, RouteOrder, Routes, RoutingFacts};
use domain::{
    DeliveryError, Kind, MessageIdForm, MessageStatus, Money, Number, Reference, Rewriting,
    Submission, Timestamp, Transid,
};

use crate::money::releases::settle;
use crate::wakeups::Wakeup;
use crate::{Clock, Delivery, SANDBOX_CARRIER, run_detached_with_attempts};
use store::error::Result;
use store::gate::Priority;
use store::hold;
use store::messages::{self, Ending};
use store::queue::{self, Moved, Requeued, Routed};

/// Stands for the carrier of queued messages that match no route.
pub(crate) const NO_CARRIER: &str = "";
/// The number of waiting rows per transaction.
const CHUNK: i64 = 500;
/// How often a message whose routes are all closed is checked again, because their hours may change
/// meanwhile.
const CLOSED_MS: i64 = 10 * 60_000;
/// The minimum number of receipts within an hour from which a carrier's quality is computed.
const QUALITY_RECEIPTS: u64 = 20;

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
    /// Whether its connections bind (SMPP).
    pub binds: bool,
    /// Whether the carrier receives whole messages and splits them itself.
    pub whole: bool,
    /// How the carrier writes message IDs. `None` if it writes them the same everywhere.
    pub message_id: Option<MessageIdForm>,
    /// The states in receipts that the settings name.
    pub named: NamedStates,
    /// How the carrier gets numbers and senders, unless a route says otherwise.
    pub rewriting: Rewriting,
}

/// A carrier's settings about the states and errors in its receipts.
#[derive(Clone, Debug, Default)]
pub struct NamedStates {
    pub states: BTreeMap<String, NamedState>,
    /// Our codes for the carrier's errors.
    pub errors: BTreeMap<String, DeliveryError>,
}

/// The meaning of a state: a final status, with an error unless it is delivered. `None` if the
/// message is still on its way.
pub type NamedState = Option<(MessageStatus, Option<DeliveryError>)>;

impl Network {
    /// A network with the sandbox as the only carrier. No message is delivered.
    pub fn sandbox(country_code: String, default_sender: String) -> Self {
        Self {
            carriers: vec![CarrierInfo {
                name: SANDBOX_CARRIER.to_owned(),
                sandbox: true,
                binds: false,
                whole: true,
                message_id: None,
                named: NamedStates::default(),
                rewriting: Rewriting::default(),
            }],
            routes: Routes::new(vec![Route::to(SANDBOX_CARRIER.to_owned())]),
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

    /// Whether a route leads a message to this carrier now.
    fn leads_to(&self, carrier: &str, message: &Message<'_>, now: Timestamp) -> bool {
        let number = self.address(message);
        let facts = RoutingFacts { now, ..self.facts(message, &number) };
        let mut routes = self.routes.as_slice().iter();
        routes.any(|route| route.carrier == carrier && route.matches(&facts))
    }

    fn open_routes(&self, now: Timestamp) -> Vec<bool> {
        let routes = self.routes.as_slice().iter();
        routes.map(|r| r.hours.as_ref().is_none_or(|hours| hours.include(now))).collect()
    }

    /// Whether a route leads a message to a carrier that isn't excluded, now or later.
    fn opens_later(&self, message: &Message<'_>, excluded: &[&str]) -> bool {
        let number = self.address(message);
        let facts = self.facts(message, &number);
        let mut routes = self.routes.as_slice().iter();
        routes.any(|route| !excluded.contains(&&*route.carrier) && route.fits(&facts))
    }

    /// Returns for each route when it opens next, or `now` if it is open.
    fn openings(&self, now: Timestamp) -> Vec<Timestamp> {
        let routes = self.routes.as_slice().iter();
        routes.map(|r| r.hours.as_ref().map_or(now, |hours| hours.opening(now))).collect()
    }

    /// Returns the earliest time at which a route leads a message to a carrier that isn't excluded.
    /// `openings` is what [`Self::openings`] returned.
    fn opening(
        &self,
        message: &Message<'_>,
        excluded: &[&str],
        openings: &[Timestamp],
    ) -> Option<Timestamp> {
        let number = self.address(message);
        let facts = self.facts(message, &number);
        let routes = self.routes.as_slice().iter().zip(openings);
        let fitting =
            routes.filter(|(route, _)| !excluded.contains(&&*route.carrier) && route.fits(&facts));
        fitting.map(|(_, opening)| *opening).min()
    }

    /// Returns why no route leads a message to any carrier.
    pub(crate) fn why_unroutable(&self, message: &Message<'_>) -> DeliveryError {
        let number = self.address(message);
        let shorter = RoutingFacts { segments: 1, ..self.facts(message, &number) };
        let mut routes = self.routes.as_slice().iter();
        if routes.any(|route| route.fits(&shorter)) {
            DeliveryError::InvalidLength
        } else {
            DeliveryError::NoRoute
        }
    }

    /// Returns how a carrier gets a message. A claimed message's application isn't looked up, so
    /// routes for particular applications don't count.
    pub(crate) fn rewriting(
        &self,
        carrier: &str,
        number: &Number,
        sender: &str,
    ) -> Cow<'_, Rewriting> {
        let known = self.carriers.iter().find(|known| known.name == carrier);
        let Some(CarrierInfo { rewriting: own, .. }) = known else {
            return Cow::Owned(Rewriting::default());
        };
        if self.routes.as_slice().iter().all(|route| route.rewriting.is_empty()) {
            return Cow::Borrowed(own);
        }
        let address = number.for_carrier(&self.country_code);
        let facts = RoutingFacts {
            kind: number.kind(),
            number: &address,
            application: None,
            sender,
            segments: 1,
            now: Timestamp::from_unix_ms(0),
            qualities: None,
        };
        let route = self.routes.first_to(carrier, &facts);
        route.map_or(Cow::Borrowed(own), |route| Cow::Owned(route.rewriting.or(own)))
    }

    /// Returns all ways in which a carrier may get numbers and senders.
    fn rewritings(&self, carrier: &str) -> Vec<Rewriting> {
        let known = self.carriers.iter().find(|known| known.name == carrier);
        let own = known.map(|known| known.rewriting.clone()).unwrap_or_default();
        let routes = self.routes.as_slice().iter().filter(|route| route.carrier == carrier);
        let mut all: Vec<Rewriting> = routes.map(|route| route.rewriting.or(&own)).collect();
        all.push(own);
        all
    }

    /// Returns the numbers with country code that a carrier may mean by the ones that it wrote.
    pub(crate) fn numbers_meant(&self, carrier: &str, written: &[&str]) -> Vec<String> {
        let mut numbers: Vec<String> = written.iter().map(|number| (*number).to_owned()).collect();
        for rule in self.rewritings(carrier).iter().filter_map(|all| all.number.as_ref()) {
            numbers.extend(written.iter().filter_map(|number| rule.undo(number)));
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Returns each form in which a carrier may get a number that has its country code. Leaves out
    /// plus signs, because receipts are stored without them.
    pub(crate) fn addresses(&self, carrier: &str, number: &str) -> Vec<String> {
        let rewritten = self.rewritings(carrier).into_iter();
        let forms = rewritten.flat_map(|rewriting| {
            let number = rewriting.number(number);
            [number.trim_start_matches('+').to_owned(), number.into_owned()]
        });
        forms.collect()
    }

    /// Whether `written` is a form in which a carrier may write a number that has its country code.
    pub(crate) fn writes_number(&self, carrier: &str, number: &str, written: &str) -> bool {
        let plain = |number: &str| number.trim_start_matches('+') == written;
        let is_written = |rewriting: &Rewriting| plain(&rewriting.number(number));
        number == written || self.rewritings(carrier).iter().any(is_written)
    }

    /// Whether `written` is a form in which a carrier may write a sender.
    pub(crate) fn writes_sender(&self, carrier: &str, sender: &str, written: &str) -> bool {
        let is_written = |rewriting: &Rewriting| {
            // Receipts are compared without a plus sign.
            rewriting.sender(sender).trim_start_matches('+') == written
        };
        sender == written || self.rewritings(carrier).iter().any(is_written)
    }

    /// Returns a handset's number in our form, if the carrier's rule for numbers shows that the
    /// carrier uses another form.
    pub(crate) fn handset(&self, carrier: &str, written: &str) -> Option<String> {
        let known = self.carriers.iter().find(|known| known.name == carrier)?;
        let rule = known.rewriting.number.as_ref()?;
        let says_so = !rule.add.trim_start_matches('+').is_empty();
        rule.undo(written).filter(|_| says_so)
    }

    /// Returns a carrier's price for a segment of a message. `None` if the settings have none.
    pub(crate) fn cost(&self, carrier: &str, message: &Message<'_>) -> Option<Money> {
        let number = self.address(message);
        self.routes.cost(carrier, &self.facts(message, &number))
    }

    fn address(&self, message: &Message<'_>) -> String {
        let number = Number::from_stored(message.number.to_owned(), message.kind);
        number.for_carrier(&self.country_code)
    }

    fn facts<'a>(&'a self, message: &Message<'a>, number: &'a str) -> RoutingFacts<'a> {
        RoutingFacts {
            kind: message.kind,
            number,
            application: message.application,
            sender: message.sender.unwrap_or(&self.default_sender),
            segments: message.segments,
            now: Timestamp::from_unix_ms(0),
            qualities: None,
        }
    }

    fn needs_qualities(&self) -> bool {
        self.routes.as_slice().iter().any(|route| route.order == RouteOrder::Quality)
    }

    /// Returns the carrier of every message if there is only one route, without conditions.
    pub(crate) fn only(&self) -> Option<&str> {
        match self.routes.as_slice() {
            [route] if route.is_for_all() => Some(&route.carrier),
            _ => None,
        }
    }
}

/// Chooses carriers, and tracks which of them can accept messages now.
pub(crate) struct Router {
    /// Fixed while the process runs, unlike the carriers and routes.
    pub(crate) country_code: String,
    pub(crate) default_sender: String,
    clock: Clock,
    network: RwLock<Arc<Network>>,
    qualities: RwLock<Arc<Qualities>>,
    /// True if the network has changed since the waiting messages were last checked.
    changed: AtomicBool,
    /// The routes that were open at that time.
    open_routes: Mutex<Vec<bool>>,
    /// The carriers that can't accept messages now. The value is true if the next message still
    /// goes to the carrier, as a probe.
    unusable: RwLock<HashMap<String, AtomicBool>>,
}

/// The fields of a message that routes depend on.
pub(crate) struct Message<'a> {
    pub(crate) number: &'a str,
    pub(crate) kind: Kind,
    pub(crate) sender: Option<&'a str>,
    /// If `None`, no route for a particular application matches.
    pub(crate) application: Option<Reference>,
    pub(crate) segments: usize,
}

impl Router {
    pub(crate) fn new(network: Network, clock: Clock) -> Self {
        Self {
            country_code: network.country_code.clone(),
            default_sender: network.default_sender.clone(),
            clock,
            qualities: RwLock::default(),
            network: RwLock::new(Arc::new(network)),
            // The settings may have changed since the last process.
            changed: AtomicBool::new(true),
            open_routes: Mutex::default(),
            unusable: RwLock::default(),
        }
    }

    /// Returns the carriers and routes in force.
    pub(crate) fn network(&self) -> Arc<Network> {
        Arc::clone(&self.network.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns how good the carriers were within the last hour.
    pub(crate) fn qualities(&self) -> Arc<Qualities> {
        Arc::clone(&self.qualities.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the carrier that a message waits for, or [`NO_CARRIER`] if no open route matches it.
    /// If none of the carriers can accept messages now, the message waits for the one that its
    /// routes prefer.
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
    /// `all`, returns the first carrier, whatever its state.
    fn choose(
        &self,
        message: &Message<'_>,
        random: u64,
        excluded: &[&str],
        all: bool,
    ) -> Option<String> {
        let network = self.network();
        let number = network.address(message);
        let qualities = self.qualities();
        let facts = RoutingFacts {
            now: self.clock.now(),
            qualities: Some(&qualities),
            ..network.facts(message, &number)
        };
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

    /// Returns a number and a sender as the carrier gets them.
    pub(crate) fn written(
        &self,
        carrier: &str,
        number: &Number,
        sender: Option<&str>,
    ) -> (String, String) {
        let network = self.network();
        let address = number.for_carrier(&self.country_code);
        let sender = sender.unwrap_or(&self.default_sender);
        let rewriting = network.rewriting(carrier, number, sender);
        if rewriting.is_empty() {
            return (address, sender.to_owned());
        }
        (rewriting.number(&address).into_owned(), rewriting.sender(sender).to_owned())
    }

    /// Whether the network has changed, or a route has opened or closed, since the last call.
    fn take_change(&self) -> bool {
        let open = self.network().open_routes(self.clock.now());
        let mut known = self.open_routes.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *known, open);
        self.changed.swap(false, Ordering::Relaxed) || before != *known
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

    /// Whether a route leads to another carrier that can accept messages.
    pub fn has_other_carrier(&self, carrier: &str) -> bool {
        self.inner.router.has_other(carrier)
    }

    /// Lets the next message for this carrier go there as a probe although the carrier is unusable,
    /// or cancels that. All other messages take another route meanwhile.
    pub fn let_probe(&self, carrier: &str, wanted: bool) {
        self.inner.router.let_probe(carrier, wanted);
    }

    /// Reads how good the carriers were within the last hour, if routes depend on it.
    pub async fn update_qualities(&self) -> Result<()> {
        let router = &self.inner.router;
        if !router.network().needs_qualities() {
            return Ok(());
        }
        let recent = self.recent_counts().await?.into_iter();
        let known = recent.filter(|(_, recent)| recent.hour.receipts() >= QUALITY_RECEIPTS);
        let qualities: Qualities = known
            .filter_map(|(carrier, recent)| Some((carrier, recent.hour.delivered_percent()?)))
            .collect();
        *router.qualities.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(qualities);
        Ok(())
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
    /// changed, or a route has opened or closed, since the last call. An empty name stands for
    /// messages without a carrier.
    pub async fn carriers_to_check(&self) -> Result<Vec<String>> {
        let router = &self.inner.router;
        if !router.take_change() {
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
    /// route is rejected, and its charge is released. It waits if a route matches it at another
    /// time, or while messages are held. A message stays if the carrier has some of its segments.
    pub async fn reroute(&self, carrier: &str) -> Result<()> {
        // If no other carrier can accept the backlog, don't read it.
        let router = &self.inner.router;
        let waits = carrier != NO_CARRIER && router.network().has(carrier);
        if waits && !router.is_usable(carrier) && !router.has_other(carrier) {
            return Ok(());
        }
        // Each chunk reads the rows that are due at this time. Messages that wait for a route to
        // open get a later due time. If the time were read again for each chunk, a large backlog
        // would never end.
        let now = self.now();
        let rerouting = self.in_each_shard(|shard| self.reroute_at(shard, carrier, now));
        rerouting.await.map(drop)
    }

    async fn reroute_at(&self, shard: Shard, carrier: &str, now: Timestamp) -> Result<()> {
        let waits = queue::has_unclaimed(&mut self.store().read_at(shard).await?, carrier).await?;
        let mut after = waits.then_some(Transid(0));
        while let Some(last) = after {
            let carrier = carrier.to_owned();
            after = run_detached_with_attempts(self, move |service| {
                let carrier = carrier.clone();
                async move { service.delivery().reroute_some(shard, &carrier, last, now).await }
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
        now: Timestamp,
    ) -> Result<Option<Transid>> {
        let mut tx = self.store().begin_at(shard, Priority::Bulk).await?;
        let waiting = if carrier == NO_CARRIER {
            // All of these rows leave the queue, move or wait, so each query finds the next rows.
            queue::unrouted(&mut tx, carrier, now, CHUNK).await?
        } else {
            queue::unclaimed(&mut tx, carrier, after, CHUNK).await?
        };
        let Some(last) = waiting.last().copied() else {
            return Ok(None);
        };
        let (mut moved, mut rejected, mut closed) = (Vec::new(), Vec::new(), Vec::new());
        let router = &self.inner.router;
        let network = router.network();
        let stays = router.is_usable(carrier) && carrier != NO_CARRIER;
        let openings = OnceCell::new();
        // While messages are held, none is rejected here: a carrier may have got it by a route that
        // the settings still lack.
        let is_held = hold::since(&mut tx).await?.is_some();
        for row in queue::routed(&mut tx, &waiting).await? {
            if stays && network.leads_to(carrier, &facts(&row), now) {
                continue;
            }
            let excluded: Vec<&str> = row.refused_by.split_ascii_whitespace().collect();
            let to = router.carrier(&facts(&row), self.entropy().number(), &excluded);
            let is_closed =
                to == NO_CARRIER && (is_held || network.opens_later(&facts(&row), &excluded));
            if is_closed && carrier == NO_CARRIER {
                let openings = openings.get_or_init(|| network.openings(now));
                let opening = network.opening(&facts(&row), &excluded, openings);
                closed.push(waiting_for_hours(&row, now, opening));
            } else if to == NO_CARRIER && !is_closed {
                rejected.push(unroutable(&row, &network));
            } else if to != carrier {
                moved.push(Moved { message_id: row.message_id, carrier: to });
            }
        }
        if moved.is_empty() && rejected.is_empty() && closed.is_empty() {
            // The query for `NO_CARRIER` has no cursor and would find the same rows again.
            return Ok((carrier != NO_CARRIER).then_some(last));
        }
        queue::move_to(&mut tx, &moved, now).await?;
        queue::requeue(&mut tx, &closed).await?;
        let gone: Vec<Transid> = rejected.iter().map(|ending| ending.id).collect();
        queue::drop_all(&mut tx, &gone).await?;
        let ended = messages::finish(&mut tx, &rejected, now).await?;
        settle(&mut tx, &ended, now).await?;
        tx.commit().await?;
        self.inner.wake(Wakeup::Queued);
        Ok(Some(last))
    }

    /// Returns another carrier for a message that the carrier `not` hasn't accepted. A message that
    /// was refused may wait for the other carrier. Otherwise the other carrier must be able to
    /// accept it now.
    pub(crate) fn other_way(&self, row: &Routed, not: &str, refused: bool) -> Option<String> {
        let refused_by = row.refused_by.split_ascii_whitespace();
        let excluded: Vec<&str> = refused_by.chain([not]).collect();
        let random = self.entropy().number();
        let (router, facts) = (&self.inner.router, facts(row));
        let usable = router.choose(&facts, random, &excluded, false);
        usable.or_else(|| {
            let network = router.network();
            let any = || {
                let waits = || network.opens_later(&facts, &excluded);
                router
                    .choose(&facts, random, &excluded, true)
                    .or_else(|| waits().then(|| NO_CARRIER.to_owned()))
            };
            refused.then(any).flatten()
        })
    }
}

fn facts(row: &Routed) -> Message<'_> {
    Message {
        number: &row.number,
        kind: row.kind,
        sender: row.sender.as_deref(),
        application: Some(row.reference),
        segments: row.segments,
    }
}

/// Lets a message wait until a route opens, or until the next check. Its row gets a later due time,
/// so that this run doesn't find it again.
fn waiting_for_hours(row: &Routed, now: Timestamp, opening: Option<Timestamp>) -> Requeued {
    let latest = now.plus_ms(CLOSED_MS);
    let due_at = opening.map_or(latest, |opening| opening.min(latest)).max(now.plus_ms(1));
    Requeued {
        id: row.message_id,
        due_at: due_at.unix_ms(),
        attempts: 0,
        submission: Submission::None,
        carrier: None,
        refused_by: String::new(),
    }
}

fn unroutable(row: &Routed, network: &Network) -> Ending {
    // No carrier has refused the message: if every carrier refuses one, the last refusal makes it
    // final.
    Ending {
        id: row.message_id,
        status: MessageStatus::Rejected,
        error: Some(network.why_unroutable(&facts(row)).as_str().to_owned()),
        release: true,
        taken: false,
    }
}
